import { mendable, RsmError } from '../../core/errors.ts'
import type { File as Upload } from '../../core/protocol/http/files.ts'
import { pause } from '../../net/backoff.ts'
import { call, said, withQuery } from '../api.ts'
import { keep, readKept } from '../kept.ts'

/** Bytes that are sent together and, after a cut, once more. Proxies take so many where nothing else is set (nginx). */
const partBytes = 1024 * 1024
/** Before the server is asked how far it is, in milliseconds. */
const pauseAfterCut = 1_000
/** Where this tab remembers its uploads, so that a file that is chosen again goes on where it was. */
const key = 'rsm.uploads'
/** Uploads that are remembered. */
const mostKept = 20

/** How far an upload is, in bytes; `trouble` says why it waits. */
export interface Progress {
  readonly sent: number
  readonly size: number
  readonly trouble: string
}

const nameOf = ({ name, size, lastModified }: File, isSecret: boolean) =>
  `${name} ${size} ${lastModified}${isSecret ? ' secret' : ''}`

type Kept = readonly (readonly [name: string, fileId: string])[]
const readAll = () => (readKept(sessionStorage, key) ?? []) as Kept

function remember(name: string, fileId: string): void {
  const others = readAll().filter(([other]) => other !== name)
  keep(sessionStorage, key, [...others, [name, fileId]].slice(-mostKept))
}

const pathOf = (fileId: string) => `api/files/${encodeURIComponent(fileId)}`

/** Undefined where the server does not have it any more. */
async function standing(fileId: string, signal: AbortSignal): Promise<Upload | undefined> {
  try {
    return await call<Upload>('GET', pathOf(fileId), { signal })
  } catch (error) {
    if (error instanceof RsmError && error.code === 'not_found') return undefined
    throw error
  }
}

async function begin(file: File, isSecret: boolean, signal: AbortSignal): Promise<Upload> {
  const query = { size: file.size, ...(isSecret && { secret: true }) }
  const begun = await call<Upload>('POST', withQuery('api/files', query), { signal })
  remember(nameOf(file, isSecret), begun.fileId)
  return begun
}

async function bytesOf(file: File, from: number): Promise<ArrayBuffer> {
  try {
    return await file.slice(from, from + partBytes).arrayBuffer()
  } catch (cause) {
    throw new RsmError('usage', `${file.name} can’t be read, or has changed: choose it again`, { cause })
  }
}

/** A second writer is a former request of this one, whose end the server has not seen yet. */
const isPassing = (error: unknown) =>
  mendable(error) || (error instanceof RsmError && error.code === 'conflict')

/**
 * Brings a file to the server in parts, over cuts of the connection, and from where it was if it has been begun in this tab. Rejects
 * with what waiting does not mend, `too_large` among it.
 */
export async function upload(
  file: File,
  isSecret: boolean,
  signal: AbortSignal,
  tell: (progress: Progress) => void,
): Promise<Upload> {
  const known = readAll().find(([name]) => name === nameOf(file, isSecret))?.[1]
  const anew = () => begin(file, isSecret, signal)
  let at = (known === undefined ? undefined : await standing(known, signal)) ?? (await anew())
  let isCut = false
  const show = (trouble: string) => tell({ sent: at.offset, size: file.size, trouble })
  while (!at.isComplete)
    try {
      if (isCut) at = (await standing(at.fileId, signal)) ?? (await anew())
      isCut = false
      show('')
      if (at.isComplete) break
      const bytes = await bytesOf(file, at.offset)
      at = await call<Upload>('PUT', withQuery(pathOf(at.fileId), { offset: at.offset }), { bytes, signal })
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error
      isCut = true
      show(`${said(error)}; trying again …`)
      await pause(pauseAfterCut, signal)
    }
  return at
}
