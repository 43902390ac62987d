import {
  type AuditEntry,
  type AuditFacts,
  type AuditHead,
  beforeFirst,
  showHead,
  textBehindId,
} from '../../../../core/audit.ts'
import { RsmError } from '../../../../core/errors.ts'
import { type Clock, isoTime } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import { bounded, parseEntry, systemActor } from '../../audit-entry.ts'
import type { AuditEvent, AuditLog, NotedHead } from '../../ports/audit-log.ts'
import { batched } from '../connection/batched.ts'
import type { Database } from '../connection/database.ts'
import { unavailable } from '../connection/failure.ts'
import { listRows, rawRows } from './rows.ts'

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
