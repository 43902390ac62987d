import { mendable, RsmError } from '../../core/errors.ts'
import { Backoff, pause } from '../../net/backoff.ts'

/** Longest line in bytes: the server writes none longer, so a longer one is not an entry. */
const longestLine = 256 * 1024
const pace = { first: 250, longest: 5_000 }
const verifyHint = 'copy the file audit.log of the data directory, and check it with rsm audit verify --file'
/** Milliseconds for which a lost connection is resumed. */
const resumeFor = 30_000

/** Id of a line that is an entry; null for any other. */
function idOf(line: Buffer): number | null {
  try {
    const { id, hash } = JSON.parse(line.toString('utf8')) as { id?: unknown; hash?: unknown }
    return typeof hash === 'string' && Number.isSafeInteger(id) ? (id as number) : null
  } catch {
    return null
  }
}

/** Id of the last line of a block; null if it is not an entry, after which a download cannot resume. */
function lastIdOf(block: Buffer): number | null {
  return idOf(block.subarray(block.lastIndexOf(10, block.length - 2) + 1, -1))
}

/**
 * Whole lines of the audit log, in blocks. `open` begins a download after an entry; a lost one is resumed there, so
 * each line arrives once. Errors: the server's refusal; `unreachable` if it stays unavailable, or if the connection
 * is lost after a line that is not an entry; `conflict` for a line that is incomplete or too long.
 */
export async function* wholeLines(
  open: (after: number | undefined) => Promise<AsyncIterable<Uint8Array>>,
  retryFor = resumeFor,
): AsyncGenerator<Buffer> {
  const backoff = new Backoff(pace)
  let last: number | null | undefined
  let failingSince: number | undefined
  let torn: Buffer | undefined
  for (;;) {
    try {
      let rest: Buffer = Buffer.alloc(0)
      for await (const chunk of await open(last ?? undefined)) {
        const text = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
        const end = text.lastIndexOf(10) + 1
        rest = text.subarray(end)
        if (rest.length > longestLine)
          throw new RsmError('conflict', 'the audit log is damaged: a line is longer than any entry', {
            hint: verifyHint,
          })
        if (end === 0) continue
        const block = text.subarray(0, end)
        yield block
        last = lastIdOf(block)
        failingSince = undefined
        backoff.reset()
      }
      if (rest.length === 0) return
      // The same torn line twice: the log ends there, not the connection.
      if (typeof last !== 'number' || torn?.equals(rest))
        throw new RsmError('conflict', 'the audit log is damaged: its last line is incomplete', {
          hint: verifyHint,
        })
      torn = rest
      throw new RsmError('unreachable', 'the audit log ends within a line')
    } catch (error) {
      // A server that never answered is an error at once, as in any command.
      if (!(error instanceof RsmError) || !mendable(error) || last === undefined) throw error
      if (last === null)
        throw new RsmError(
          'unreachable',
          `${error.message}, and a download cannot resume after a damaged line`,
          {
            cause: error,
          },
        )
      failingSince ??= performance.now()
      if (performance.now() - failingSince >= retryFor) throw error
      await pause(backoff.next())
    }
  }
}

/** Lines of such a block, without their newlines. */
export function* linesOf(block: Uint8Array): Generator<Buffer> {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
  for (let from = 0, end = bytes.indexOf(10); end !== -1; from = end + 1, end = bytes.indexOf(10, from))
    yield bytes.subarray(from, end)
}
