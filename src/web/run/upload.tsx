import { useEffect, useRef, useState } from 'preact/hooks'
import { showBytes } from '../../cli/text/amounts.ts'
import { invalid, mendable, RsmError } from '../../core/errors.ts'
import type { Copy, File as Upload } from '../../core/protocol/http/files.ts'
import { pause } from '../../net/backoff.ts'
import { call, errorText, withQuery } from '../api.ts'
import { readStored, writeStored } from '../store.ts'

/** Bytes of one part: sent again after a lost connection, and within the default limit of proxies (nginx). */
const partBytes = 1024 * 1024
/** Milliseconds to wait after a lost connection. */
const pauseAfterCut = 1_000
/** Uploads of this tab, so that a file that is chosen again resumes. */
const storageKey = 'rsm.uploads'
const mostKept = 20

/** Progress of an upload, in bytes; `trouble`: why it is waiting. */
export interface Progress {
  readonly sent: number
  readonly size: number
  readonly trouble: string
}

/** A body that may refer to a file: in a copy, or as a script's stdin. */
interface Naming {
  readonly copy?: Copy
  readonly stdin?: { fileId: string }
}

/** A body, and the file to upload for it; undefined if it needs none, or the server has it. */
export interface WithFile<Body extends Naming> {
  readonly body: Body
  readonly file: File | undefined
  /** Whether the server keeps the file sealed. */
  readonly isSecret?: boolean
}

interface UploadBarProps {
  progress: Progress
  onStop: () => void
}

type Kept = readonly (readonly [name: string, fileId: string])[]

/**
 * Uploads a file in parts; resumes after lost connections, and if this tab has already started it. Rejects
 * with errors that retries cannot fix, such as `too_large`.
 */
export async function upload(
  file: File,
  isSecret: boolean,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<Upload> {
  const known = readAll().find(([name]) => name === nameOf(file, isSecret))?.[1]
  const restart = () => begin(file, isSecret, signal)
  let at = (known === undefined ? undefined : await standing(known, signal)) ?? (await restart())
  let isCut = false
  const report = (trouble: string) => onProgress({ sent: at.offset, size: file.size, trouble })
  while (!at.isComplete)
    try {
      if (isCut) at = (await standing(at.fileId, signal)) ?? (await restart())
      isCut = false
      report('')
      if (at.isComplete) break
      const bytes = await bytesOf(file, at.offset)
      at = await call<Upload>('PUT', withQuery(pathOf(at.fileId), { offset: at.offset }), { bytes, signal })
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error
      isCut = true
      report(`${errorText(error)}; trying again …`)
      await pause(pauseAfterCut, signal)
    }
  return at
}

/** Undefined if the server no longer has it. */
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

/** A conflict passes: it is an earlier request of this page that the server has not finished. */
const isPassing = (error: unknown) =>
  mendable(error) || (error instanceof RsmError && error.code === 'conflict')

const pathOf = (fileId: string) => `api/files/${encodeURIComponent(fileId)}`

const nameOf = ({ name, size, lastModified }: File, isSecret: boolean) =>
  `${name} ${size} ${lastModified}${isSecret ? ' secret' : ''}`
const readAll = () => (readStored(sessionStorage, storageKey) ?? []) as Kept

function remember(name: string, fileId: string): void {
  const others = readAll().filter(([other]) => other !== name)
  writeStored(sessionStorage, storageKey, [...others, [name, fileId]].slice(-mostKept))
}

export function useUpload() {
  const [progress, setProgress] = useState<Progress | undefined>()
  const controller = useRef(new AbortController())
  useEffect(() => () => controller.current.abort(), [])

  /** The body with the ID of its uploaded file. Errors: `invalid` at the file's field; those of `upload`. */
  async function send<Body extends Naming>({ body, file, isSecret = false }: WithFile<Body>): Promise<Body> {
    if (file === undefined) return body
    try {
      const { fileId } = await upload(file, isSecret, controller.current.signal, setProgress)
      return body.copy === undefined
        ? { ...body, stdin: { fileId } }
        : { ...body, copy: { ...body.copy, fileId } }
    } catch (error) {
      throw atFile(error, body.copy === undefined ? 'stdin.fileId' : 'copy.fileId')
    } finally {
      setProgress(undefined)
    }
  }

  return {
    progress,
    stop: () => controller.current.abort(),
    /** Starts work; the signal aborts when it is stopped or the page is left. */
    begin: (): AbortSignal => (controller.current = new AbortController()).signal,
    send,
  }
}

/** Moves errors about the file itself to its field. */
function atFile(error: unknown, field: string): unknown {
  const isOfFile = error instanceof RsmError && (error.code === 'too_large' || error.code === 'usage')
  return isOfFile ? invalid([{ field, message: error.message }]) : error
}

export function UploadBar({ progress: { sent, size, trouble }, onStop }: UploadBarProps) {
  return (
    <div class="upload">
      <progress value={sent} max={Math.max(size, 1)} aria-label="Upload" />
      <span role="status">{`${showBytes(sent)} of ${showBytes(size)}`}</span>
      <button type="button" onClick={onStop}>
        Stop
      </button>
      {trouble !== '' && <small class="fault">{trouble}</small>}
    </div>
  )
}
