import { emptyCounts, type ResultStatus } from '../../../../core/tasks/task.ts'
import type { Executions, RunningExecution } from '../../ports/executions.ts'
import { createChanges } from './changes.ts'
import { columns, idOf, isThere, type Row, readPaged, rowsAtOnce, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'
import { createWaiting, createWaitingCounts } from './waiting.ts'

type Queries = Pick<
  Executions,
  | 'transactWithOpen'
  | 'find'
  | 'ofHosts'
  | 'ofTask'
  | 'ofHost'
  | 'waiting'
  | 'waitingOn'
  | 'counts'
  | 'changes'
  | 'changedTasks'
  | 'running'
  | 'load'
>

const isNotHeld = 'e.task_id <> all (array(select task_id from rsm.held))'

const ofHostText = `(select ${columns} from rsm.executions e
    where e.host_id = $1 and e.status = 'RUNNING' and not e.over_ssh order by e.due_at, e.task_id)
  union all
  (select ${columns} from rsm.executions e
    where e.host_id = $1 and e.status = 'PENDING' and e.due_at is not null and not e.over_ssh and ${isNotHeld}
    order by e.due_at, e.task_id)`

const ofHostsText = `select ${columns} from rsm.executions e where e.task_id = $1 and e.host_id = any($2::bigint[])`

const ofTaskText = `select e.host_id, ${columns} from rsm.executions e
  where e.task_id = $1 and e.host_id > $2 order by e.host_id limit $3`

const partOfTaskText = `select ${columns} from rsm.executions e
  where e.task_id = $1 order by e.position offset $2 limit $3`

const loadText = `select (select count(*) from rsm.tasks where status = 'RUNNING') as tasks,
    count(*) filter (where status = 'RUNNING') as running, count(*) filter (where status = 'PENDING') as waiting
  from rsm.executions where status in ('PENDING', 'RUNNING') and due_at is not null and not over_ssh`

const openText = `select count(*) as count from rsm.executions where host_id = $1 and status in ('PENDING', 'RUNNING')`

export function createQueries(
  steps: Steps,
  inDoubtOf: (hostIds: readonly number[]) => readonly number[],
): Queries {
  const { database, store, clock } = steps.deps
  const waiting = createWaiting(database, inDoubtOf)

  async function ask(name: string, text: string, values: readonly unknown[]): Promise<RunningExecution[]> {
    const rows = await database.ask<Row>('api', { name: `executions ${name}`, text }, values)
    return rows.map((row) => steps.claimed.withOutput(storedOf(row)))
  }

  async function ofHosts(taskId: string, hostIds: readonly number[]): Promise<RunningExecution[]> {
    const found: RunningExecution[] = []
    for (let at = 0; at < hostIds.length; at += rowsAtOnce)
      found.push(...(await ask('of hosts', ofHostsText, [taskId, hostIds.slice(at, at + rowsAtOnce)])))
    return found
  }

  return {
    ...createChanges(database),
    async counts(taskId) {
      const rows = await database.ask<{ status: ResultStatus; count: number }>(
        'api',
        {
          name: 'executions counts',
          text: 'select status, sum(count)::bigint as count from rsm.execution_counts where task_id = $1 group by status',
        },
        [taskId],
      )
      if (rows.length === 0) return null
      const counts = emptyCounts()
      for (const { status, count } of rows) counts[status] = count
      return counts
    },
    waiting,
    waitingOn: createWaitingCounts(database, clock),
    transactWithOpen: (hostId, work) =>
      store.transactAsk(async (tx, askTx) => {
        const [open] = await askTx<{ count: number }>({ name: 'executions count open', text: openText }, [
          hostId,
        ])
        return work(tx, open?.count ?? 0)
      }),
    async find(taskId, hostId) {
      const id = idOf(taskId, hostId)
      await steps.claimed.get(id)?.reading
      const own = steps.claimed.get(id)
      if (own) return steps.claimed.withOutput(own.stored)
      const [stored] = await steps.read([id])
      return stored && steps.claimed.withOutput(stored)
    },
    ofHosts,
    async ofTask(taskId, part) {
      if (part && 'hostIds' in part) return ofHosts(taskId, part.hostIds)
      if (part) return ask('part of task', partOfTaskText, [taskId, part.offset, part.limit])
      const rows = await readPaged<Row & { host_id: number }>(
        database,
        { name: 'executions of task', text: ofTaskText },
        taskId,
      )
      // If the task ended between two pages, the rest was not read.
      if (rows.length >= rowsAtOnce && !(await isThere(database, taskId))) return []
      return rows
        .toSorted((a, b) => a.rec.position - b.rec.position)
        .map((row) => steps.claimed.withOutput(storedOf(row)))
    },
    ofHost: (hostId) => ask('of host', ofHostText, [hostId]),
    async running() {
      const rows = await database.ask<{ id: string }>('api', {
        name: 'executions running',
        text: `select id from rsm.tasks where status = 'RUNNING' order by id`,
      })
      return rows.map(({ id }) => id)
    },
    async load() {
      const [load] = await database.ask<{ tasks: number; running: number; waiting: number }>('api', {
        name: 'executions load',
        text: loadText,
      })
      return load ?? { tasks: 0, running: 0, waiting: 0 }
    },
  }
}
