import { type AuditHead, showHead } from '../../../../core/audit.ts'
import { parseEntry } from '../../audit/stored-entry.ts'
import type { AuditLog, NotedHead } from '../../ports/audit-log.ts'
import type { Database } from '../connection/database.ts'

interface Found extends AuditHead {
  /** The last entry of the log, and the line that stands where the noted one did. */
  last: number | null
  line: string | null
}

/** A row apart from the log: of several servers the one that has noted a head last. */
export function createNotedHead(database: Database, audit: Pick<AuditLog, 'head'>): NotedHead {
  return {
    async missing() {
      const [found] = await database.ask<Found>(
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
