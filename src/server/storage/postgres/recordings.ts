import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../../../core/errors.ts'
import { Mutex } from '../../../core/mutex.ts'
import { isoTime } from '../../../disk/clock.ts'
import type { Orphans } from '../ports/outputs.ts'
import type { Recordings, RecordingWriter } from '../ports/terminals.ts'
import { batched } from './connection/batched.ts'
import type { Database } from './connection/database.ts'
import { isAway, isToBeRepeated } from './connection/failure.ts'

/** Appends per statement, each of at most what an agent sends before it waits for an acknowledgement. */
const largestBatch = 64
const day = 24 * 3600_000

/** Bytes per read and per check; chunks are read whole, so that a read may be slightly larger. */
const readBytes = 1024 * 1024
const checkBytes = 16 * 1024 * 1024

const makeStatement = `with made as (
    insert into rsm.recordings(id, writer, bytes, changed_at)
    values ($1, nextval('rsm.epochs'), length($2::bytea), rsm.now()) on conflict do nothing returning key, writer, packed),
  header as (insert into rsm.recording_chunks(recording, start, data) select key, 0, $2::bytea from made)
  select * from made`

/** Recordings as rows, durable with each append. Of several servers, the last one to reopen a recording writes it. */
export function createRecordings(database: Database): Recordings {
  const shared: Shared = {
    database,
    append: batched(
      (additions: Parameters<typeof appendAll>[1]) => appendAll(database, additions),
      largestBatch,
    ),
    packs: new Mutex(),
  }

  async function find(id: string): Promise<{ key: number; bytes: number } | undefined> {
    const text = 'select key, bytes from rsm.recordings where id = $1 and aside is null'
    const [row] = await database.ask<{ key: number; bytes: number }>('api', text, [id])
    return row
  }

  return {
    async create(id, header) {
      const [claim] = await database.ask<RecordingClaim>('api', makeStatement, [id, header])
      if (!claim) throw new RsmError('conflict', `terminal session ${id} has a recording already`)
      return createWriter(shared, claim, header.length)
    },
    async *content(id) {
      const found = await find(id)
      if (!found) throw gone(id)
      yield* readChunks(database, { key: found.key, session: id })
    },
    async reopen(id, size) {
      const text = 'select key, writer, packed from rsm.recording_reopen($1, $2)'
      const [claim] = await database.ask<RecordingClaim>('api', text, [id, size])
      if (!claim) throw gone(id)
      return createWriter(shared, claim, size)
    },
    async read(id, bytes) {
      const found = await find(id)
      if (!found) throw gone(id)
      const place = { key: found.key, session: id }
      const size = bytes ?? found.bytes
      await verifyChunks(database, place, size)
      return Readable.from(readChunks(database, place, size), { objectMode: false })
    },
    async forget(id) {
      await remove(database, 'id = $1 and aside is null', id)
    },
    async list() {
      const text = 'select id, changed_at from rsm.recordings where aside is null'
      const rows = await database.ask<{ id: string; changed_at: string }>('api', text)
      return rows.map(({ id, changed_at }) => ({ id, changedAt: Date.parse(changed_at) }))
    },
    async moveAside(ids, now) {
      const at = isoTime(now)
      const text = 'update rsm.recordings set aside = $2 where id = any($1) and aside is null'
      await database.ask('api', text, [ids, at])
      return `rsm.recordings with aside = '${at}'`
    },
    orphans: createOrphans(database),
  }
}

const gone = (id: string) =>
  new RsmError('gone', `The recording of terminal session ${id} is no longer kept`, {
    hint: 'the server keeps recordings for --recording-retention days',
  })

function createOrphans(database: Database): Pick<Orphans, 'sweep'> {
  return {
    async sweep(days, age) {
      if (days === 0) return
      const text = 'select distinct aside from rsm.recordings where aside is not null'
      for (const { aside } of await database.ask<{ aside: string }>('api', text))
        if (age(Date.parse(aside)) >= days * day) await remove(database, 'aside = $1', aside)
    },
  }
}

/** `which`: a condition on one value. */
async function remove(database: Database, which: string, value: string): Promise<void> {
  await database.ask(
    'api',
    `with removed as (delete from rsm.recordings where ${which} returning key)
     delete from rsm.recording_chunks c using removed r where c.recording = r.key`,
    [value],
  )
}

const damaged = (session: string, place: string) =>
  new RsmError('gone', `the recording of terminal session ${session} is damaged: ${place}`, {
    hint: 'restore it from a backup',
  })

/** Whether an error has an SQLSTATE of corrupted data or indexes. */
const isCorrupt = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('XX')

/**
 * Condition for chunks of recording $1 with bytes from $2 to $3. The first one may begin earlier, because
 * packing joins chunks.
 */
const wantedChunks = `recording = $1 and start < $3 and start >= coalesce(
    (select max(c.start) from rsm.recording_chunks c where c.recording = $1 and c.start <= $2), $2)
  order by start`

interface Place {
  readonly key: number
  readonly session: string
}

/**
 * Checks that the first `size` bytes exist and match their checksums.
 * @throws RsmError `gone` with the first damaged place
 */
export async function verifyChunks(database: Database, { key, session }: Place, size: number): Promise<void> {
  for (let at = 0; at < size; ) {
    const rows = await database
      .ask<{ start: number; size: number; sound: boolean }>(
        'api',
        `select start, length(data) as size, sum = substring(sha256(data) for 8) as sound
         from rsm.recording_chunks where ${wantedChunks}`,
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

/** Reads the first `size` bytes, or everything stored, even if it changes meanwhile. */
export async function* readChunks(
  database: Database,
  { key, session }: Place,
  size?: number,
): AsyncGenerator<Buffer> {
  const end = size ?? Number.MAX_SAFE_INTEGER
  for (let at = 0; at < end; ) {
    const rows = await database.ask<{ start: number; data: Buffer }>(
      'api',
      `select start, data from rsm.recording_chunks where ${wantedChunks}`,
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

/** A writer's claim on its recording, until another writer reopens it. */
interface RecordingClaim {
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
type Append = (addition: Addition) => Promise<boolean>

/** Milliseconds to retry an append while PostgreSQL is unreachable, as long as a terminal waits for its host (contract §7). */
const longestWait = 60_000
const pauseBetween = 250
/** Bytes to pack into one chunk, because large chunks compress and save rows. */
const packBytes = 256 * 1024

const appendStatement = {
  name: 'recordings_append',
  text: 'select key, stands from rsm.recordings_append($1, $2, $3, $4, $5, $6)',
}

async function appendAll(database: Database, additions: readonly Addition[]): Promise<boolean[]> {
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
interface Shared {
  readonly database: Database
  readonly append: Append
  /** Packs one recording at a time, to leave connections for more urgent statements. */
  readonly packs: Mutex
}

/** Appends to a recording from `start` on. */
function createWriter(
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
