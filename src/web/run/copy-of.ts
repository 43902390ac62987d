import { type FieldFault, invalid } from '../../core/errors.ts'
import type { Copy, Fetch } from '../../core/protocol/http/files.ts'
import { writtenPathFault } from '../../core/tasks/remote-path.ts'

/** Bytes of a text whose changes are shown (contract §13). */
const longestDiff = 1024 * 1024

/** A file, as far as a copy of it is judged by it. */
export type CopiedFile = Pick<File, 'name' | 'size'>

type Field = (name: string) => string

/** Why no difference is shown; null where one is. */
function diffFault(field: Field, kind: Copy['kind'], size: number): string | null {
  if (field('copy.check') !== 'DIFF') return null
  if (kind === 'TREE') return 'A difference is shown of one file, not of an archive'
  if (field('secret') !== '') return 'A difference would show what is secret'
  return size > longestDiff ? 'A difference is shown of text up to 1 MiB' : null
}

/**
 * What is to become of a file on hosts, by the fields of the form; `fileId` comes once it is uploaded, and no file where the server has it
 * already. Errors: `invalid` with all that would be refused after that, at its field.
 */
export function copyOf(field: Field, file: CopiedFile | undefined): Omit<Copy, 'fileId'> {
  const kind: Copy['kind'] = field('copy.kind') === 'TREE' ? 'TREE' : 'FILE'
  const typed = field('copy.path').trim()
  // A percent sign in the path of a copy stands for something.
  const name = kind === 'FILE' && typed.endsWith('/') ? (file?.name ?? '').replaceAll('%', '%%') : ''
  const path = typed + name
  const check = field('copy.check')
  const [mode, owner, group] = ['mode', 'owner', 'group'].map((each) => field(`copy.${each}`).trim())
  const faults: [name: string, message: string | null][] = [
    ['copy.path', writtenPathFault(path, kind)],
    ['copy.check', diffFault(field, kind, file?.size ?? 0)],
    ['copy.mode', mode && !/^[0-7]{3,4}$/.test(mode) ? 'Write 3 or 4 octal digits, like 0640' : null],
  ]
  const found = faults.flatMap(([at, message]): FieldFault[] =>
    message === null ? [] : [{ field: at, message }],
  )
  if (found.length > 0) throw invalid(found)
  return {
    path,
    kind,
    ...(mode && { mode }),
    ...(owner && { owner }),
    ...(group && { group }),
    ...(field('copy.backup') !== '' && { backup: true }),
    ...(check !== '' && { check: check as 'CHANGED' | 'DIFF' }),
  }
}

/** The fields of the form for a copy that there is. */
export function copyFields({ kind, path, check, mode, owner, group, backup }: Copy): Record<string, string> {
  return {
    'copy.kind': kind,
    'copy.path': path,
    'copy.check': check ?? '',
    'copy.mode': mode ?? '',
    'copy.owner': owner ?? '',
    'copy.group': group ?? '',
    'copy.backup': backup === true ? 'true' : '',
  }
}

/** What is fetched from hosts. Errors: `invalid` with what is wrong with the path. */
export function fetchOf(field: Field): Fetch {
  const path = field('fetch.path').trim()
  const kind: Fetch['kind'] = field('fetch.kind') === 'TREE' ? 'TREE' : 'FILE'
  const message = writtenPathFault(path, kind)
  if (message !== null) throw invalid([{ field: 'fetch.path', message }])
  return { path, kind, ...(field('fetch.follow') !== '' && { follow: true }) }
}
