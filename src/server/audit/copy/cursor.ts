import { readFile } from 'node:fs/promises'
import { type AuditHead, parseHead, showHead } from '../../../core/audit.ts'
import { writeFileDurably } from '../../../disk/durable.ts'

/** How far a target has come, on disk: a file with the head of what was copied, and the target. */
export interface Cursor {
  /** Null where nothing is known of this target. */
  read(): Promise<AuditHead | null>
  write(head: AuditHead): Promise<void>
}

export function createCursor(path: string, target: string): Cursor {
  return {
    async read() {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return ''
        throw error
      })
      const [head = '', of] = text.trimEnd().split(' ')
      // One that can't be read is none: what was copied comes again, and nothing is left out.
      return of === encodeURI(target) ? (parseHead(head) ?? null) : null
    },
    write: (head) => writeFileDurably(path, `${showHead(head)} ${encodeURI(target)}\n`),
  }
}
