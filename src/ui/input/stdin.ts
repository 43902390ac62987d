import { RsmError } from '../../core/errors.ts'
import { utf8Text } from '../text/utf8-text.ts'

/** More than any script or list of hosts that the server takes. */
const maxStdinBytes = 16 * 1024 * 1024

/** Reads all of stdin as text; it can be read for one thing only. */
export interface StdinReader {
  (what: string): Promise<string>
  readonly isTaken: boolean
}

export function stdinReader(): StdinReader {
  let taken: string | undefined
  const read = async (what: string) => {
    if (taken !== undefined) throw new RsmError('usage', `stdin can't be both ${taken} and ${what}`)
    taken = what
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of process.stdin) {
      chunks.push(chunk as Buffer)
      size += (chunk as Buffer).length
      if (size > maxStdinBytes) throw new RsmError('usage', `too much on stdin for ${what}`)
    }
    return utf8Text(Buffer.concat(chunks), `${what} on stdin`)
  }
  return Object.defineProperty(read, 'isTaken', { get: () => taken !== undefined }) as StdinReader
}
