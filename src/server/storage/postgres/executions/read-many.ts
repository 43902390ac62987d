import { batched } from '../connection/batched.ts'
import type { Database } from '../connection/database.ts'
import { columns, keyOf, type Row, type Stored, storedOf } from './rows.ts'
import { rowsAtOnce } from './whole-task.ts'

const text = `select ${columns} from unnest($1::text[], $2::bigint[]) as i(t, h)
  join rsm.executions e on e.task_id = i.t and e.host_id = i.h`

/** Reads executions by their ids, what is asked meanwhile together; answers those that are there. */
export function createReadMany(database: Database): (ids: readonly string[]) => Promise<Stored[]> {
  const read = batched(
    async (asked: readonly (readonly string[])[]) => {
      const keys = [...new Set(asked.flat())].map(keyOf)
      const rows = await database.ask<Row>('write', { name: 'executions read', text }, [
        keys.map(({ taskId }) => taskId),
        keys.map(({ hostId }) => hostId),
      ])
      const found = new Map(rows.map((row) => [row.rec.id, storedOf(row)]))
      return asked.map((ids) => ids.flatMap((id) => found.get(id) ?? []))
    },
    rowsAtOnce,
    ({ length }) => length,
  )
  return async (ids) => {
    const pieces: Promise<Stored[]>[] = []
    for (let at = 0; at < ids.length; at += rowsAtOnce) pieces.push(read(ids.slice(at, at + rowsAtOnce)))
    return (await Promise.all(pieces)).flat()
  }
}
