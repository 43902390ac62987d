import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../../../../core/errors.ts'
import type { Mutex } from '../../../../core/mutex.ts'
import type { RecordingWriter } from '../../ports/terminals.ts'
import type { Database } from '../connection/database.ts'
import { isAway, isToBeRepeated } from '../connection/failure.ts'

/** A writer's claim on its recording, until another writer reopens it. */
export interface RecordingClaim {
  readonly key: number
  readonly writer: number
  /** Offset up to which chunks are packed. */
  readonly packed: number
}

/** Bytes to append at `start`, the end that the writer knows. */
interface Addition {
  readonly claim: RecordingClaim
  readonly start: number
  readonly bytes: Uint8Array
}

/** Appends to a recording; false if another writer has claimed it. */
export type Append = (addition: Addition) => Promise<boolean>

/** Milliseconds to retry an append while PostgreSQL is unreachable, as long as a terminal waits for its host (contract §7). */
const longestWait = 60_000
const pauseBetween = 250
/** Bytes to pack into one chunk, because large chunks compress and save rows. */
const packBytes = 256 * 1024

const appendStatement = {
  name: 'recordings_append',
  text: 'select key, stands from rsm.recordings_append($1, $2, $3, $4, $5, $6)',
}

export async function appendAll(database: Database, additions: readonly Addition[]): Promise<boolean[]> {
  const ends: number[] = []
  for (const { bytes } of additions) ends.push((ends.at(-1) ?? 0) + bytes.length)
  const column = (of: (addition: Addition, at: number) => number) => additions.map(of)
  const rows = await untilBack(() =>
    database.ask<{ key: number; stands: boolean }>('write', appendStatement, [
      column(({ claim }) => claim.key),
      column(({ claim }) => claim.writer),
      column(({ start }) => start),
      column(({ bytes }, at) => (ends[at] ?? 0) - bytes.length + 1),
      column(({ bytes }) => bytes.length),
      Buffer.concat(additions.map(({ bytes }) => bytes)),
    ]),
  )
  const standing = new Set(rows.filter(({ stands }) => stands).map(({ key }) => key))
  return additions.map(({ claim }) => standing.has(claim.key))
}

/** Retries while PostgreSQL is unreachable. An append that already happened is recognized by its offset. */
async function untilBack<T>(ask: () => Promise<T>): Promise<T> {
  const until = performance.now() + longestWait
  for (;;)
    try {
      return await ask()
    } catch (error) {
      if (!(isAway(error) || isToBeRepeated(error)) || performance.now() >= until) throw error
      await delay(pauseBetween)
    }
}

/** Shared by the writers of a server. */
export interface Shared {
  readonly database: Database
  readonly append: Append
  /** Packs one recording at a time, to leave connections for more urgent statements. */
  readonly packs: Mutex
}

/** Appends to a recording from `start` on. */
export function createWriter(
  { database, append, packs }: Shared,
  claim: RecordingClaim,
  start: number,
): RecordingWriter {
  let end = start
  let { packed } = claim

  /** Ignores errors: the next pack retries, and unpacked chunks only take more space. */
  async function pack(): Promise<void> {
    if (packed === end) return
    const to = end
    await database
      .ask('write', 'select rsm.recording_pack($1, $2, $3, $4)', [claim.key, claim.writer, packed, to])
      .then(() => {
        packed = to
      })
      .catch(() => undefined)
  }

  return {
    async append(pieces) {
      const bytes = Buffer.concat(pieces)
      if (bytes.length === 0) return
      if (!(await append({ claim, start: end, bytes })))
        throw new RsmError('conflict', 'another server continues this recording')
      end += bytes.length
      if (end - packed >= packBytes) await packs.run(pack)
    },
    end: () => packs.run(pack),
  }
}
