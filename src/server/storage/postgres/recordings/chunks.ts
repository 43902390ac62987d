import { RsmError } from '../../../../core/errors.ts'
import type { Database } from '../connection/database.ts'

/** Bytes of one question; chunks are read whole, so that an answer may be somewhat larger. */
const readBytes = 1024 * 1024
const checkBytes = 16 * 1024 * 1024

const damaged = (session: string, place: string) =>
  new RsmError('gone', `the recording of terminal session ${session} is damaged: ${place}`, {
    hint: 'put it back from a backup',
  })

/** SQLSTATEs of rows that can't be read: corrupted data or indexes. */
const isCorrupt = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('XX')

/** Of the bytes from $2 on, below $3, of the recording $1. What is in a chunk of its own now may be joined to others before it is asked for. */
const those = `recording = $1 and start < $3 and start >= coalesce(
    (select max(c.start) from rsm.recording_chunks c where c.recording = $1 and c.start <= $2), $2)
  order by start`

interface Place {
  readonly key: number
  readonly session: string
}

/**
 * Looks through what should be `size` bytes.
 * @throws RsmError `gone` with the place where they are not what was written
 */
export async function verifyChunks(database: Database, { key, session }: Place, size: number): Promise<void> {
  for (let at = 0; at < size; ) {
    const rows = await database
      .ask<{ start: number; size: number; sound: boolean }>(
        'api',
        `select start, length(data) as size, sum = substring(sha256(data) for 8) as sound
         from rsm.recording_chunks where ${those}`,
        [key, at, Math.min(at + checkBytes, size)],
      )
      .catch((error: unknown) => {
        throw isCorrupt(error) ? damaged(session, `bytes from ${at}: ${(error as Error).message}`) : error
      })
    const wanted = rows.filter(({ start, size: length }) => start + length > at)
    if (wanted.length === 0) throw damaged(session, `it ends at byte ${at}, not ${size}`)
    for (const { start, size: length, sound } of wanted) {
      if (start > at) throw damaged(session, `bytes ${at} to ${start} are missing`)
      if (!sound) throw damaged(session, `bytes ${start} to ${start + length}`)
      at = start + length
    }
  }
}

/** The first `size` bytes; without it all that is there, whatever becomes of it meanwhile. */
export async function* readChunks(
  database: Database,
  { key, session }: Place,
  size?: number,
): AsyncGenerator<Buffer> {
  const end = size ?? Number.MAX_SAFE_INTEGER
  for (let at = 0; at < end; ) {
    const rows = await database.ask<{ start: number; data: Buffer }>(
      'api',
      `select start, data from rsm.recording_chunks where ${those}`,
      [key, at, Math.min(at + readBytes, end)],
    )
    const block = Buffer.concat(rows.map(({ start, data }) => data.subarray(Math.max(0, at - start))))
    if (block.length === 0) {
      if (size === undefined) return
      throw damaged(session, `it ends at byte ${at}, not ${size}`)
    }
    yield block.subarray(0, end - at)
    at += block.length
  }
}
