import type { TaskResult } from '../../../core/tasks/task.ts'
import { isoTime } from '../../../disk/clock.ts'
import { resultOf } from '../executions/summary.ts'
import type { Part, Results, TaskRemains } from '../ports/outputs.ts'
import type { Database } from './connection/database.ts'
import { readPaged, rowsAtOnce } from './executions/rows.ts'

const day = 24 * 3600_000

const readText = `select host_id, position, rec from rsm.results
  where task_id = $1 and host_id > $2 order by host_id limit $3`

const readPartText = `select rec from rsm.results where task_id = $1 order by position offset $2 limit $3`

const readHostsText = `select rec from rsm.results where task_id = $1 and host_id = any($2::bigint[])`

export interface Texts {
  script: string
  gates: TaskRemains['gates'] | null
}

interface Row {
  rec: TaskResult
}

/** Values of the columns of rsm.remains, except `aside_at`. */
export const remainsOf = (taskId: string, { script, gates }: Omit<TaskRemains, 'results'>) => [
  taskId,
  JSON.stringify(script),
  gates ? JSON.stringify(gates) : null,
]

export const textsIn = ({ script, gates }: Texts): Omit<TaskRemains, 'results'> => ({
  script,
  ...(gates && { gates }),
})

/** Results in PostgreSQL, one row per host. The end of a task moves its executions here. `outputs`: removed with orphans. */
export function createPostgresResults(
  database: Database,
  outputs: { forget(taskId: string): Promise<void> },
): Results {
  const ask = <R extends object>(name: string, text: string, values: readonly unknown[]) =>
    database.ask<R>('api', { name: `results ${name}`, text }, values)

  async function forget(taskId: string): Promise<void> {
    await ask(
      'forget',
      `with results as (delete from rsm.results where task_id = $1) delete from rsm.remains where task_id = $1`,
      [taskId],
    )
  }

  const readPart = (taskId: string, part: Part) =>
    'offset' in part
      ? ask<Row>('read part', readPartText, [taskId, part.offset, part.limit])
      : ask<Row>('read hosts', readHostsText, [taskId, part.hostIds])

  async function readAll(taskId: string): Promise<Row[]> {
    const statement = { name: 'results read', text: readText }
    const rows = await readPaged<Row & { host_id: number; position: number }>(database, statement, taskId)
    return rows.toSorted((a, b) => a.position - b.position)
  }

  return {
    async write(taskId, { results, ...texts }) {
      await database.transaction('api', async (ask) => {
        await ask('delete from rsm.results where task_id = $1', [taskId])
        await ask(
          `insert into rsm.remains(task_id, script, gates) values ($1, $2, $3)
          on conflict (task_id) do update set script = excluded.script, gates = excluded.gates, aside_at = null`,
          remainsOf(taskId, texts),
        )
        for (let at = 0; at < results.length; at += rowsAtOnce)
          await ask(
            `insert into rsm.results(task_id, host_id, position, rec)
            select $1, (rec->>'hostId')::bigint, $3 + place, rec from jsonb_array_elements($2::jsonb) with ordinality as r(rec, place)`,
            [taskId, JSON.stringify(results.slice(at, at + rowsAtOnce)), at],
          )
      })
    },
    async read(taskId, part) {
      const results = await (part ? readPart(taskId, part) : readAll(taskId))
      // Read this last: both are removed together, so that the results above were complete if this row still exists.
      const [remains] = await ask<Texts>(
        'script',
        'select script, gates from rsm.remains where task_id = $1 and aside_at is null',
        [taskId],
      )
      if (!remains) return null
      return { ...textsIn(remains), results: results.map(({ rec }) => resultOf(rec)) }
    },
    forget,
    async list() {
      const rows = await ask<{ task_id: string }>(
        'list',
        'select task_id from rsm.remains where aside_at is null order by task_id',
        [],
      )
      return rows.map(({ task_id }) => task_id)
    },
    orphans: {
      async moveAside(taskIds, now) {
        const at = isoTime(now)
        await ask('aside', 'update rsm.remains set aside_at = $2 where task_id = any($1::text[])', [
          taskIds,
          at,
        ])
        return `rsm.remains, aside_at = ${at}`
      },
      async sweep(days, age) {
        if (days === 0) return
        const rows = await ask<{ task_id: string; aside_at: string }>(
          'orphans',
          'select task_id, aside_at from rsm.remains where aside_at is not null',
          [],
        )
        for (const { task_id, aside_at } of rows)
          if (age(Date.parse(aside_at)) >= days * day) {
            await outputs.forget(task_id)
            await forget(task_id)
          }
      },
    },
  }
}
