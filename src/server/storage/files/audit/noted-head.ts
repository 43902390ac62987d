import { readFile } from 'node:fs/promises'
import { parseHead, showHead } from '../../../../core/audit.ts'
import { writeFileDurably } from '../../../../disk/durable.ts'
import type { AuditLog, NotedHead } from '../../ports/audit-log.ts'

/** A file beside the log. */
export function createNotedHead(path: string, audit: Pick<AuditLog, 'head'>): NotedHead {
  return {
    async missing() {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null
        throw error
      })
      if (text === null) return null
      const noted = parseHead(text.trim())
      const found = await audit.head()
      if (noted === undefined) return `${path} does not hold a head`
      if (found.id < noted.id)
        return `the audit log ends at entry ${found.id}, the head noted was ${showHead(noted)}`
      if (found.id === noted.id && found.hash !== noted.hash)
        return `entry ${found.id} of the audit log is not the one noted as ${showHead(noted)}`
      return null
    },
    note: async () => writeFileDurably(path, `${showHead(await audit.head())}\n`, 0o600),
  }
}
