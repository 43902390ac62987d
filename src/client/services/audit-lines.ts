import { mendable, RsmError } from '../../core/errors.ts'
import { Backoff, pause } from '../../net/backoff.ts'

/** Most bytes of one line: the server writes none longer, so whatever is longer is no entry. */
const longestLine = 256 * 1024
const pace = { first: 250, longest: 5_000 }
const verifyHint =
  'copy the file audit.log of the data directory, and look at it with rsm audit verify --file'
/** How long a lost connection is resumed, in milliseconds. */
const resumeFor = 30_000

/** The id of a line that is an entry; null for any other. */
function idOf(line: Buffer): number | null {
  try {
    const { id, hash } = JSON.parse(line.toString('utf8')) as { id?: unknown; hash?: unknown }
    return typeof hash === 'string' && Number.isSafeInteger(id) ? (id as number) : null
  } catch {
    return null
  }
}

/** The id of the last line of a block; null where that is no entry, behind which nothing can be resumed. */
function lastIdOf(block: Buffer): number | null {
  return idOf(block.subarray(block.lastIndexOf(10, block.length - 2) + 1, -1))
}

/**
 * Whole lines of the audit log, in blocks. `open` begins a download behind an entry, as one that is lost is resumed there: so
 * each line comes once. Errors: what the server answers instead; `unreachable` where it stays away, or is lost behind a line
 * that is no entry; `conflict` for a line that is longer than any entry, or has no end.
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
        throw new RsmError('conflict', 'the audit log is damaged: its last line has no end', {
          hint: verifyHint,
        })
      torn = rest
      throw new RsmError('unreachable', 'the audit log ends within a line')
    } catch (error) {
      // A server that never answered is told at once, as by any command.
      if (!(error instanceof RsmError) || !mendable(error) || last === undefined) throw error
      if (last === null)
        throw new RsmError('unreachable', `${error.message}, and behind a damaged line nothing is resumed`, {
          cause: error,
        })
      failingSince ??= performance.now()
      if (performance.now() - failingSince >= retryFor) throw error
      await pause(backoff.next())
    }
  }
}

/** The lines of such a block, without their newlines. */
export function* linesOf(block: Uint8Array): Generator<Buffer> {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
  for (let from = 0, end = bytes.indexOf(10); end !== -1; from = end + 1, end = bytes.indexOf(10, from))
    yield bytes.subarray(from, end)
}
