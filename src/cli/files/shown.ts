import type { Copy, File } from '../../core/protocol/http/files.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { showBytes } from '../text/amounts.ts'
import { showDuration } from '../text/time.ts'

type Fields = Record<string, string>

/** Undefined if the file cannot be looked up. */
type Known = Partial<Pick<File, 'name' | 'size' | 'sha256' | 'isSecret'>> | undefined

/** `app.conf, 139 B, sha256 054a…` */
function fileLine(fileId: string, file: Known): string {
  const { name = null, size = null, sha256 = null } = file ?? {}
  const parts = [name, size === null ? null : showBytes(size), sha256 === null ? null : `sha256 ${sha256}`]
  const known = parts.filter((part) => part !== null)
  return known.length === 0 ? fileId : known.join(', ')
}

export function copyFields({ fileId, kind, ...copy }: Copy, file: Known): Fields {
  const { path, mode, sourceMode, owner, group, backup, check } = copy
  const isTree = kind === 'TREE'
  const replaced = isTree ? 'of each replaced file, else of its source' : 'of the replaced file'
  const otherwise = isTree
    ? replaced
    : `${replaced}, else ${sourceMode ?? (file?.isSecret ? '0600' : '0644')}`
  const named = [owner ?? '', ...(group === undefined ? [] : [group])].join(':')
  return {
    [isTree ? 'tree' : 'file']: fileLine(fileId, file),
    to: path,
    mode: mode ?? otherwise,
    owner: named === '' ? 'of the replaced file, else of the writer' : named,
    ...(backup && { backup: 'the replaced file is kept as NAME.rsm-TASK' }),
    ...(check && {
      check: check === 'DIFF' ? 'writes nothing, shows how the text differs' : 'writes nothing',
    }),
  }
}

export const stdinFields = (fileId: string, file: Known): Fields => ({ stdin: fileLine(fileId, file) })

export const rateFields = (limitRate: number | null | undefined): Fields =>
  typeof limitRate === 'number' ? { 'limit rate': `${showBytes(limitRate)}/s` } : {}

export function filesOfTask({
  copy,
  fetch,
  stdin,
  limitRate,
}: Pick<TaskSummary, 'copy' | 'fetch' | 'stdin' | 'limitRate'>): Fields {
  return {
    ...(copy && copyFields({ ...copy, fileId: copy.file.fileId }, copy.file)),
    ...(fetch && {
      from: fetch.path,
      kind: fetch.kind === 'TREE' ? 'a directory with its content' : 'a file',
      ...(fetch.maxSize !== undefined && { 'at most': `${showBytes(fetch.maxSize)} from each host` }),
      ...(fetch.follow && { symlinks: 'followed' }),
    }),
    ...(stdin && stdinFields(stdin.fileId, stdin)),
    ...rateFields(limitRate),
  }
}

/** `12.3 MB of 1.0 GB`, `35.2 MB/s`, `28 s left`; total and rate (bytes per second) only if known. */
export function transferParts(bytes: number, size: number | null, rate: number | null): string[] {
  const parts = [size === null ? showBytes(bytes) : `${showBytes(bytes)} of ${showBytes(size)}`]
  if (rate === null || rate <= 0) return parts
  parts.push(`${showBytes(rate)}/s`)
  if (size !== null && size > bytes) {
    const left = Math.ceil((size - bytes) / rate)
    parts.push(`${left < 60 ? `${left} s` : showDuration(left * 1000)} left`)
  }
  return parts
}
