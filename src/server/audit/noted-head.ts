import { readFile } from 'node:fs/promises'
import { parseHead, showHead } from '../../core/audit.ts'
import { writeFileDurably } from '../../disk/durable.ts'
import type { AuditLog } from './audit-log.ts'

/**
 * The head of the audit log, noted beside it in a file of its own at every start, stop and hour: a log that was removed,
 * emptied or cut at a line while the server was down is told from one that ended there (S11). Whoever may write both can
 * hide it; the heads in the server's own log are for that.
 */
export interface NotedHead {
  /** What the log should have and has not, as a sentence; null when it has all that was noted. */
  missing(): Promise<string | null>
  note(): Promise<void>
}

export function createNotedHead(path: string, audit: Pick<AuditLog, 'head'>): NotedHead {
  return {
    async missing() {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null
        throw error
      })
      if (text === null) return null
      const noted = parseHead(text.trim())
      const found = audit.head()
      if (noted === undefined) return `${path} does not hold a head`
      if (found.id < noted.id)
        return `the audit log ends at entry ${found.id}, the head noted was ${showHead(noted)}`
      if (found.id === noted.id && found.hash !== noted.hash)
        return `entry ${found.id} of the audit log is not the one noted as ${showHead(noted)}`
      return null
    },
    note: () => writeFileDurably(path, `${showHead(audit.head())}\n`, 0o600),
  }
}
