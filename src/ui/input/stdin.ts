import type { Readable } from 'node:stream'
import { RsmError } from '../../core/errors.ts'
import { utf8Text } from '../text/utf8-text.ts'

/** More than any script or list of hosts that the server takes. */
const maxStdinBytes = 16 * 1024 * 1024

/** Reads all of stdin as text; it can be read for one thing only. */
export interface StdinReader {
  (what: string): Promise<string>
  readonly isTaken: boolean
  /** Its bytes, as they come. */
  bytes(what: string): Readable
}

export function stdinReader(): StdinReader {
  let taken: string | undefined
  const take = (what: string) => {
    if (taken !== undefined) throw new RsmError('usage', `stdin can't be both ${taken} and ${what}`)
    taken = what
  }
  const read = async (what: string) => {
    take(what)
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of process.stdin) {
      chunks.push(chunk as Buffer)
      size += (chunk as Buffer).length
      if (size > maxStdinBytes) throw new RsmError('usage', `too much on stdin for ${what}`)
    }
    return utf8Text(Buffer.concat(chunks), `${what} on stdin`)
  }
  const bytes = (what: string) => {
    take(what)
    return process.stdin
  }
  const reader: unknown = Object.defineProperties(read, {
    bytes: { value: bytes },
    isTaken: { get: () => taken !== undefined },
  })
  return reader as StdinReader
}
