import { emptyCounts, type ResultStatus } from '../../../../core/tasks/task.ts'
import type { Clock } from '../../../../disk/clock.ts'
import type { ExecutionReads, Executions, RunningExecution } from '../../ports/executions.ts'
import type { Database } from '../connection/database.ts'
import { createChanges } from './changes.ts'
import { columns, idOf, isThere, type Row, readPaged, rowsAtOnce, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'

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
): ExecutionReads & Pick<Executions, 'transactWithOpen'> {
  const { database, store, clock } = steps.deps

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
    waiting: createWaiting(database, inDoubtOf),
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
    async page(taskId, part) {
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

/** If no more executions than this wait in the fleet, all of them are read. */
const few = 1000

/** Condition of executions that can be sent to their host. */
const waits = `status = 'PENDING' and due_at is not null and not over_ssh
  and task_id <> all (array(select task_id from rsm.held))`

const fewText = `select host_id from rsm.executions where ${waits} limit ${few + 1}`

const waitingOnText = `select h as host_id from unnest($1::bigint[]) as h where exists (
    select from rsm.executions where host_id = h and ${waits})`

/**
 * Finds hosts that have executions to take. Called each second for all linked hosts: usually few executions
 * wait, and reading those is faster than checking each host.
 */
function createWaiting(
  database: Database,
  inDoubtOf: (hostIds: readonly number[]) => readonly number[],
): (hostIds: readonly number[]) => Promise<number[]> {
  type Host = { host_id: number }

  return async (hostIds) => {
    if (hostIds.length === 0) return []
    const all = await database.ask<Host>('write', { name: 'executions waiting', text: fewText })
    const asked = new Set(hostIds)
    const rows =
      all.length <= few
        ? all.filter(({ host_id }) => asked.has(host_id))
        : await database.ask<Host>('write', { name: 'executions waiting on', text: waitingOnText }, [hostIds])
    return [...new Set([...rows.map(({ host_id }) => host_id), ...inDoubtOf(hostIds)])]
  }
}

/** Milliseconds for which counts are cached. */
const keptFor = 1000
/** Maximum share of time spent on reading counts, which is slow if many hosts wait. */
const maxTimeShare = 1 / 20
/** Maximum age of counts in milliseconds, even if reading is slow: an agent asks every 30 s. */
const keptAtMost = 10_000

/** Returns one row, because 100,000 rows would take the server ten times as long to parse. */
const waitingCountsText = `select json_object_agg(host_id, waiting) as counts from (
    select host_id, count(*) as waiting from rsm.executions where ${waits} group by host_id) as hosts`

interface WaitingCounts {
  readonly byHost: Readonly<Record<number, number>>
  /** Monotonic milliseconds. */
  readonly until: number
}

/**
 * Counts executions that wait for a host. Heartbeats ask thousands of times a second, so counts of all hosts are read at once and
 * cached.
 */
export function createWaitingCounts(database: Database, clock: Clock): (hostId: number) => Promise<number> {
  let known: WaitingCounts = { byHost: {}, until: Number.NEGATIVE_INFINITY }
  let reading: Promise<void> | null = null

  async function read(): Promise<void> {
    const asked = clock.monotonic()
    try {
      const [row] = await database.ask<{ counts: WaitingCounts['byHost'] | null }>('api', {
        name: 'executions waiting counts',
        text: waitingCountsText,
      })
      const took = clock.monotonic() - asked
      const kept = Math.min(Math.max(took / maxTimeShare, keptFor), keptAtMost)
      known = { byHost: row?.counts ?? {}, until: asked + kept }
    } finally {
      reading = null
    }
  }

  return async (hostId) => {
    if (clock.monotonic() >= known.until) await (reading ??= read())
    return known.byHost[hostId] ?? 0
  }
}
