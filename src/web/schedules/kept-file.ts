import { showBytes } from '../../cli/text/bytes.ts'
import type { File } from '../../core/protocol/http/files.ts'
import type { Schedule } from '../../core/protocol/http/schedules.ts'
import { call } from '../api.ts'
import { allowed, session } from '../session.ts'

/** What a schedule copies, or its script reads; undefined where it names no file, and of other users' files, which nobody else is shown. */
export async function keptFile({ copy, stdin, owner }: Schedule): Promise<File | undefined> {
  const fileId = copy?.fileId ?? stdin?.fileId
  if (fileId === undefined || !allowed('execute') || session.get()?.user.username !== owner) return undefined
  return call<File>('GET', `api/files/${encodeURIComponent(fileId)}`).catch(() => undefined)
}

/** `12.3 kB, SHA-256 0123456789ab…` */
export function keptSaid(file: File | undefined): string {
  if (file?.size == null || file.sha256 === null) return 'A file that the server keeps'
  return `${showBytes(file.size)}, SHA-256 ${file.sha256.slice(0, 12)}…`
}
