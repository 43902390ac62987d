import { type FieldFault, invalid } from '../../core/errors.ts'
import type { Copy, Fetch } from '../../core/protocol/http/files.ts'
import { writtenPathFault } from '../../core/tasks/remote-path.ts'

/** Longest text with a diff, in bytes (contract §13). */
const longestDiff = 1024 * 1024

export type CopiedFile = Pick<File, 'name' | 'size'>

type Field = (name: string) => string

/** Why no diff is possible; null if it is. */
function diffFault(field: Field, kind: Copy['kind'], size: number): string | null {
  if (field('copy.check') !== 'DIFF') return null
  if (kind === 'TREE') return 'A diff is possible for one file, not for an archive'
  if (field('secret') !== '') return 'A diff would reveal the secret'
  return size > longestDiff ? 'A diff is possible for text up to 1 MiB' : null
}

/**
 * A copy from the fields of the form, without `fileId`, which is known after the upload; `file` is undefined
 * if the server has the file. Errors: `invalid` at the fields, for everything the server would refuse after
 * the upload.
 */
export function copyOf(field: Field, file: CopiedFile | undefined): Omit<Copy, 'fileId'> {
  const kind: Copy['kind'] = field('copy.kind') === 'TREE' ? 'TREE' : 'FILE'
  const typed = field('copy.path').trim()
  // Paths of copies have % placeholders, so escape those in the name.
  const name = kind === 'FILE' && typed.endsWith('/') ? (file?.name ?? '').replaceAll('%', '%%') : ''
  const path = typed + name
  const check = field('copy.check')
  const [mode, owner, group] = ['mode', 'owner', 'group'].map((each) => field(`copy.${each}`).trim())
  const faults: [name: string, message: string | null][] = [
    ['copy.path', writtenPathFault(path, kind)],
    ['copy.check', diffFault(field, kind, file?.size ?? 0)],
    ['copy.mode', mode && !/^[0-7]{3,4}$/.test(mode) ? 'Enter 3 or 4 octal digits, like 0640' : null],
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

/** A fetch from the fields of the form. Errors: `invalid` for its path. */
export function fetchOf(field: Field): Fetch {
  const path = field('fetch.path').trim()
  const kind: Fetch['kind'] = field('fetch.kind') === 'TREE' ? 'TREE' : 'FILE'
  const message = writtenPathFault(path, kind)
  if (message !== null) throw invalid([{ field: 'fetch.path', message }])
  return { path, kind, ...(field('fetch.follow') !== '' && { follow: true }) }
}
