import { useEffect, useRef, useState } from 'preact/hooks'
import { invalid, RsmError } from '../../core/errors.ts'
import type { Copy } from '../../core/protocol/http/files.ts'
import { type Progress, upload } from './upload.ts'

/** What names a file that is to be on the server first: a copy, or a script's stdin. */
interface Naming {
  readonly copy?: Copy
  readonly stdin?: { fileId: string }
}

/** A body, and the file that it names as soon as that has an id; undefined where it needs none, or has one already. */
export interface WithFile<Body extends Naming> {
  readonly body: Body
  readonly file: File | undefined
  /** Whether the server keeps it sealed. */
  readonly isSecret?: boolean
}

/** What is wrong with the file itself stands at its field. */
function atFile(error: unknown, field: string): unknown {
  const isOfFile = error instanceof RsmError && (error.code === 'too_large' || error.code === 'usage')
  return isOfFile ? invalid([{ field, message: error.message }]) : error
}

/** Brings the file of a body to the server, once for each work. */
export function useUpload() {
  const [progress, setProgress] = useState<Progress | undefined>()
  const leave = useRef(new AbortController())
  useEffect(() => () => leave.current.abort(), [])

  /** The body with the id of its file. Errors: `invalid` at the file's field, and as `upload`. */
  async function send<Body extends Naming>({ body, file, isSecret = false }: WithFile<Body>): Promise<Body> {
    if (file === undefined) return body
    try {
      const { fileId } = await upload(file, isSecret, leave.current.signal, setProgress)
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
    /** Of an upload that runs. */
    progress,
    stop: () => leave.current.abort(),
    /** Work begins that may be stopped; the signal says that it was, or that the page was left. */
    begin: (): AbortSignal => (leave.current = new AbortController()).signal,
    send,
  }
}
