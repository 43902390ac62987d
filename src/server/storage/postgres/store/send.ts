import type { AnyRecord, Id } from '../../records/records.ts'
import type { Statement } from '../connection/database.ts'
import type { Open } from './open.ts'
import { idOf, isNumbered, type Table } from './tables.ts'

/** Records of one statement: those of a whole fleet at once would take it too long. */
const mostSent = 2000

/** In the order of ids, as whoever locks rows in the same order waits for nobody who waits for them. */
const inOrder = (a: { id: Id }, b: { id: Id }) => (a.id < b.id ? -1 : 1)

/** Puts and removes records of a noun; null stands for one that is removed. */
export async function sendChanges(
  table: Table,
  byId: ReadonlyMap<Id, AnyRecord | null>,
  open: Open,
): Promise<void> {
  const { noun } = table
  const put = [...byId.values()].filter((record) => record !== null).sort(inOrder)
  const removed = [...byId].flatMap(([id, record]) => (record === null ? [idOf(table, id)] : []))
  const highest = put.at(-1)?.id
  if (isNumbered(noun) && typeof highest === 'number') await open.ids.raise(open.ask, noun, highest)
  for (let at = 0; at < Math.max(put.length, removed.length); at += mostSent)
    await sendSome(table, put.slice(at, at + mostSent), removed.slice(at, at + mostSent), open)
}

async function sendSome(
  table: Table,
  put: readonly AnyRecord[],
  removed: readonly unknown[],
  { ask, sent }: Open,
): Promise<void> {
  const { noun } = table
  const rows = await ask<{ id: string; xid: string }>(statementOf(table), [
    ...putValues(table, put),
    removed.filter((id) => id !== undefined),
  ])
  for (const { id, xid } of rows) {
    sent.xid = xid
    sent.changed.push({ noun, id: isNumbered(noun) ? Number(id) : id })
  }
}

/** Names of columns in SQL, `id` and `rec` first. */
const namesOf = ({ columns }: Table) => ['id', 'rec', ...columns.map(({ name }) => `"${name}"`)]

/** What puts records with the parameters of `putValues`, behind `insert into`. */
export function putText(table: Table): string {
  const { noun, idType, columns } = table
  const names = namesOf(table)
  // `unnest` would take lists of lists apart.
  const types = [idType, 'json', ...columns.map(({ type }) => (type === 'bigint[]' ? 'text' : type))]
  const arrays = types.map((type, at) => `$${at + 1}::${type}[]`)
  const values = ['id', 'rec', ...columns.map(({ name, type }) => `"${name}"::${type}`)]
  return `rsm.${noun}(${names.join(', ')})
        select ${values.join(', ')} from unnest(${arrays.join(', ')}) as new(${names.join(', ')})`
}

/** An array for each column. */
export const putValues = (table: Table, put: readonly AnyRecord[]): unknown[] => [
  put.map((record) => idOf(table, record.id)),
  put.map((record) => JSON.stringify(record)),
  ...table.columns.map((column) => put.map((record) => column.value(record))),
]

/** Writes what `putText` does, and removes an array of ids; what it has changed it notes for other servers. */
function statementOf(table: Table): Statement {
  const { noun, idType } = table
  const names = namesOf(table)
  return {
    name: `store put ${noun}`,
    text: `with put as (
        insert into ${putText(table)}
        on conflict (id) do update set ${names
          .slice(1)
          .map((name) => `${name} = excluded.${name}`)
          .join(', ')}
        returning id),
      gone as (delete from rsm.${noun} where id = any($${names.length + 1}::${idType}[]) returning id)
      insert into rsm.changes(noun, id) select '${noun}', id::text from put union all select '${noun}', id::text from gone
      returning id, xid::text`,
  }
}
