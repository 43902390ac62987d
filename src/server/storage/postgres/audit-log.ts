import {
  type AuditEntry,
  type AuditFacts,
  type AuditFilter,
  type AuditHead,
  beforeFirst,
  showHead,
  textBehindId,
} from '../../../core/audit.ts'
import { RsmError } from '../../../core/errors.ts'
import type { Page } from '../../../core/protocol/http/common.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import { bounded, parseEntry, systemActor, unreadableAction, unreadableEntry } from '../audit-entry.ts'
import { pageOf, windowOf } from '../paging.ts'
import type { AuditEvent, AuditLog, ListQuery, NotedHead, RawQuery } from '../ports/audit-log.ts'
import { batched } from './connection/batched.ts'
import type { Database } from './connection/database.ts'
import { unavailable } from './connection/failure.ts'

interface AuditLogOptions {
  database: Database
  storeId: string
  clock: Clock
  log: Log
}

/** Maximum entries waiting for PostgreSQL; each blocks a request or an event of the server. */
const longestQueue = 100_000
/** Entries per statement: while it runs, other servers wait for the head. */
const largestBatch = 200
const appendStatement = { name: 'audit_append', text: 'select before, hashes from rsm.audit_append($1, $2)' }

/** Opens the log; a new log begins with an entry with the id of the store. */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  const { storeId, clock } = options
  const begin: AuditEvent = {
    at: isoTime(clock.now()),
    actor: systemActor,
    ip: null,
    action: 'audit.begin',
    object: { type: 'store', id: storeId, name: null },
    outcome: 'SUCCESS',
    detail: {},
  }
  await appendTo(options.database, [bounded(begin)], true)
  return createAuditLog(options)
}

function createAuditLog({ database, clock, log }: AuditLogOptions): AuditLog {
  let waiting = 0
  let refused = 0
  let last: Promise<unknown> = Promise.resolve()
  const chained = batched((facts: readonly AuditFacts[]) => appendTo(database, facts, false), largestBatch)

  function resumed(): void {
    const detail = { refused }
    refused = 0
    log.info(detail, 'the audit log accepts entries again')
    const own = { actor: systemActor, ip: null, object: null, outcome: 'SUCCESS' } as const
    append({ ...own, action: 'audit.resume', detail }).catch(() => undefined)
  }

  async function settled(appended: Promise<AuditEntry>): Promise<AuditEntry> {
    try {
      const entry = await appended
      if (refused > 0) resumed()
      return entry
    } catch (error) {
      if (refused++ === 0) log.warn({ err: error }, 'the audit log refuses entries')
      throw error
    } finally {
      waiting--
    }
  }

  async function append(event: AuditEvent): Promise<AuditEntry> {
    if (waiting >= longestQueue)
      throw new RsmError('unavailable', 'too many audit entries wait for the store')
    const at = event.at ?? isoTime(clock.now())
    waiting++
    const appended = settled(chained(bounded({ ...event, at })))
    last = appended.catch(() => undefined)
    return appended
  }

  async function head(): Promise<AuditHead> {
    const [row] = await database.ask<AuditHead>('api', 'select id, hash from rsm.audit_head')
    return row ?? beforeFirst
  }

  return {
    append,
    head,
    list: async (query) => listRows(database, await head(), query),
    raw: (which = {}) => rawRows(database, head, which),
    get refusal() {
      return database.refusal
    },
    async close() {
      await last
    },
  }
}

/** Appends entries; if `isFirst`, only to an empty log. */
async function appendTo(
  database: Database,
  facts: readonly AuditFacts[],
  isFirst: boolean,
): Promise<AuditEntry[]> {
  const rests = facts.map(textBehindId).join('\n')
  const rows = await database
    .ask<{ before: number; hashes: string[] }>('api', appendStatement, [rests, isFirst])
    .catch((error: unknown) => {
      throw unavailable(error)
    })
  return rows.flatMap(({ before, hashes }) =>
    hashes.map((hash, at) => ({ id: before + at + 1, ...(facts[at] as AuditFacts), hash })),
  )
}

interface NotedRow extends AuditHead {
  /** Id of the last entry, and the line that now has the id of the noted one. */
  last: number | null
  line: string | null
}

/** Stores the noted head in a row of its own; the last server to note one wins. */
export function createNotedHead(database: Database, audit: Pick<AuditLog, 'head'>): NotedHead {
  return {
    async missing() {
      const [found] = await database.ask<NotedRow>(
        'api',
        `select n.id, n.hash, (select max(id) from rsm.audit) as last, a.line
         from rsm.audit_noted n left join rsm.audit a on a.id = n.id`,
      )
      if (!found) return null
      const { id, line, last } = found
      if (line !== null && parseEntry(line)?.hash === found.hash) return null
      if ((last ?? 0) < id)
        return `the audit log ends at entry ${last ?? 0}, the head noted was ${showHead(found)}`
      return `entry ${id} of the audit log is not the one noted as ${showHead(found)}`
    },
    async note() {
      const { id, hash } = await audit.head()
      await database.ask(
        'api',
        `insert into rsm.audit_noted(id, hash, at, server) values ($1, $2, rsm.now(), $3)
         on conflict (only_one) do update set id = excluded.id, hash = excluded.hash, at = excluded.at, server = excluded.server`,
        [id, hash, database.name],
      )
    },
  }
}

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
async function listRows(
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
