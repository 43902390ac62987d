import type { AuditEntry, AuditFilter, AuditHead } from '../../../../core/audit.ts'
import type { Page } from '../../../../core/protocol/http/common.ts'
import { isoTime } from '../../../../disk/clock.ts'
import { parseEntry, unreadableAction, unreadableEntry } from '../../audit-entry.ts'
import { pageOf, windowOf } from '../../paging.ts'
import type { ListQuery, RawQuery } from '../../ports/audit-log.ts'
import type { Database } from '../connection/database.ts'

/** Rows per page of stored lines: few enough that the largest ones take a few MB. */
const pageRows = 500

interface Row {
  id: number
  line: string | null
  damaged: Buffer | null
}

/** Conditions on rows, and the values of their numbered parameters. */
interface Where {
  readonly conditions: string[]
  readonly values: unknown[]
}

const columns = 'id, line, damaged'
const newline = Buffer.from('\n')

/** Reads a page, newest first. With a cursor (`before`), counts at most one entry past the page. */
export async function listRows(
  database: Database,
  { id: lastId }: AuditHead,
  query: ListQuery,
): Promise<Page<AuditEntry>> {
  const { page: _page, offset: _offset, size: _size, before, ...filter } = query
  const { offset: first, limit: size } = windowOf(query)
  const newest = before === undefined ? lastId : Math.min(lastId, before - 1)
  const counted = before === undefined ? null : first + size + 1
  if (isEmpty(filter)) {
    const total = Math.min(newest, counted ?? newest)
    // Ids have no gaps.
    const where = { conditions: ['id <= $1'], values: [newest - first] }
    return pageOf(await lastEntries(database, where, size, 0), total, query)
  }
  const where: Where = { conditions: ['id <= $1'], values: [newest] }
  addFilter(where, filter)
  const [content, total] = await Promise.all([
    lastEntries(database, where, size, first),
    countUpTo(database, where, counted),
  ])
  return pageOf(content, total, query)
}

async function lastEntries(
  database: Database,
  where: Where,
  most: number,
  from: number,
): Promise<AuditEntry[]> {
  const text = `select ${columns} from rsm.audit where ${whereOf(where)} order by id desc limit ${most} offset ${from}`
  return (await database.ask<Row>('api', text, where.values)).map(entryOf)
}

/** Counts all rows if `most` is null. */
async function countUpTo(database: Database, where: Where, most: number | null): Promise<number> {
  const found = `select from rsm.audit where ${whereOf(where)} limit ${most ?? 'all'}`
  const [row] = await database.ask<{ count: number }>(
    'api',
    `select count(*) from (${found}) as found`,
    where.values,
  )
  return row?.count ?? 0
}

/** Reads stored lines up to the head, oldest first, in blocks of whole lines. */
export async function* rawRows(
  database: Database,
  head: () => Promise<AuditHead>,
  { after = 0, ...filter }: RawQuery,
): AsyncGenerator<Buffer> {
  const { id: lastId } = await head()
  const where: Where = { conditions: ['id > $1', 'id <= $2'], values: [after, lastId] }
  addFilter(where, filter)
  const text = `select ${columns} from rsm.audit where ${whereOf(where)} order by id limit ${pageRows}`
  for (;;) {
    const rows = await database.ask<Row>('api', text, where.values)
    if (rows.length > 0) yield Buffer.concat(rows.flatMap((row) => [bytesOf(row), newline]))
    if (rows.length < pageRows) return
    where.values[0] = rows.at(-1)?.id
  }
}

const isEmpty = (filter: AuditFilter): boolean => Object.values(filter).every((value) => value === undefined)

const isUnreadable = 'not rsm.audit_is_entry(id, line, at, action)'

function addFilter(where: Where, filter: AuditFilter): void {
  const { conditions, values } = where
  const json = (text: string) => `rsm.audit_json($${values.push(JSON.stringify(text))})`
  const add = (column: string, operator: string, text: string | undefined) => {
    if (text !== undefined) conditions.push(`${column} ${operator} ${json(text)}`)
  }
  const time = (text: string | undefined) => (text === undefined ? undefined : isoTime(Date.parse(text)))
  const { action, actor, objectType, objectId, outcome, from, to } = filter
  if (action === unreadableAction) conditions.push(isUnreadable)
  else add('action', '=', action)
  add('actor', '=', actor)
  add('object_type', '=', objectType)
  // An id may be a number in the entry.
  if (objectId !== undefined) {
    const bare = /^-?\d+$/.test(objectId) ? `, $${values.push(objectId)}` : ''
    conditions.push(`object_id in (${json(objectId)}${bare})`)
  }
  add('outcome', '=', outcome)
  add('at', '>=', time(from))
  add('at', '<=', time(to))
}

const whereOf = ({ conditions }: Where) => conditions.join(' and ')

function entryOf(row: Row): AuditEntry {
  const entry = row.line === null ? null : parseEntry(row.line)
  return entry ?? unreadableEntry(row.id, { row: row.id, bytes: bytesOf(row).length })
}

const bytesOf = ({ line, damaged }: Row): Buffer => damaged ?? Buffer.from(line ?? '')
