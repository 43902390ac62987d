import { invalid } from '../../core/errors.ts'
import type { Copy } from '../../core/protocol/http/files.ts'
import { writtenPathFault } from '../../core/task/remote-path.ts'

/** Bytes of a text whose changes are shown (contract §13). */
const longestDiff = 1024 * 1024

/** A file, as far as a copy of it is judged by it. */
export type CopiedFile = Pick<File, 'name' | 'size'>

/**
 * What is to become of a file on hosts, by the fields of the form; `fileId` comes once it is uploaded. Errors: `invalid` with what
 * would be refused after that, at its field.
 */
export function copyOf(field: (name: string) => string, file: CopiedFile): Omit<Copy, 'fileId'> {
  const typed = field('copy.path').trim()
  // A percent sign in the path of a copy stands for something.
  const path = typed.endsWith('/') ? typed + file.name.replaceAll('%', '%%') : typed
  const fault = writtenPathFault(path, 'FILE')
  if (fault !== null) throw invalid([{ field: 'copy.path', message: fault }])
  const check = field('copy.check')
  if (check === 'DIFF' && file.size > longestDiff)
    throw invalid([{ field: 'copy.check', message: 'A difference is shown of text up to 1 MiB' }])
  const [mode, owner, group] = ['mode', 'owner', 'group'].map((name) => field(`copy.${name}`).trim())
  if (mode && !/^[0-7]{3,4}$/.test(mode))
    throw invalid([{ field: 'copy.mode', message: 'Write 3 or 4 octal digits, like 0640' }])
  return {
    path,
    kind: 'FILE',
    ...(mode && { mode }),
    ...(owner && { owner }),
    ...(group && { group }),
    ...(field('copy.backup') !== '' && { backup: true }),
    ...(check !== '' && { check: check as 'CHANGED' | 'DIFF' }),
  }
}
