import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import type { FetchedFile } from './services/files.ts'
import { isPassing, patience, pause } from './upload.ts'

interface DownloadOptions {
  /** Bytes received so far, and the size of the file. */
  readonly got: (bytes: number, size: number) => void
  readonly cut: (why: string) => void
}

/**
 * Downloads a file of the server; `open` starts at an offset. Resumes after a cut. Errors: `unreachable` after five
 * minutes without progress; `internal` after the last byte if the checksum differs from the server's.
 */
export async function* download(
  open: (from: number) => Promise<FetchedFile>,
  { got, cut }: DownloadOptions,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let have = 0
  let failingSince: number | undefined
  for (;;) {
    try {
      const { size, sha256, bytes } = await open(have)
      for await (const piece of bytes) {
        have += piece.length
        hash.update(piece)
        failingSince = undefined
        got(have, size)
        yield piece
        if (have === size) break
      }
      if (have < size) throw new RsmError('unreachable', 'the connection was lost')
      if (hash.digest('hex') === sha256) return
      throw new RsmError('internal', 'the received file differs from that of the server: copy it again')
    } catch (error) {
      if (!isPassing(error)) throw error
      if (failingSince === undefined) cut(error.message)
      failingSince ??= performance.now()
      if (performance.now() - failingSince > patience) throw error
      await delay(pause)
    }
  }
}
