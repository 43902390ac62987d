import { BoundedMap } from '../../../core/bounded-map.ts'
import type { Outputs, ReadQuery, StoredLine } from '../../storage/ports/outputs.ts'
import type { ShortLived } from '../../storage/ports/short-lived.ts'

/** Milliseconds for which the other servers count a noted reader, and between two notes. */
const noted = 60_000
const noteEvery = 20_000

/** Tasks whose log is being followed or streamed; they are not removed under their readers (contract §4). */
export interface ReadersOfTasks {
  /** Whether this server has a reader. */
  has(taskId: string): boolean
  /** Whether this server has more than one reader. */
  areSeveral(taskId: string): boolean
  isReadElsewhere(taskId: string): Promise<boolean>
  /** Adds a reader; returns a function that removes it. */
  enter(taskId: string): () => void
}

/** `shared`: where the servers of one store note their readers; null with a single server. */
export function createReadersOfTasks(
  shared: Pick<ShortLived, 'put' | 'wait' | 'forget'> | null,
): ReadersOfTasks {
  const counts = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  // Ignore errors: while the store is unreachable, no server removes tasks either.
  const note = (taskId: string) => void shared?.put('reader', taskId, {}, noted).catch(() => undefined)
  const noteAll = () => {
    for (const taskId of counts.keys()) note(taskId)
  }

  function leave(taskId: string): void {
    const left = (counts.get(taskId) ?? 1) - 1
    if (left > 0) return void counts.set(taskId, left)
    counts.delete(taskId)
    void shared?.forget('reader', taskId).catch(() => undefined)
    if (counts.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    has: (taskId) => counts.has(taskId),
    areSeveral: (taskId) => (counts.get(taskId) ?? 0) > 1,
    isReadElsewhere: async (taskId) =>
      shared !== null && (await shared.wait('reader', taskId, { most: 1, life: noted })) > 0,
    enter(taskId) {
      const before = counts.get(taskId) ?? 0
      counts.set(taskId, before + 1)
      if (before === 0) note(taskId)
      if (shared) timer ??= setInterval(noteAll, noteEvery).unref()
      return () => leave(taskId)
    },
  }
}

const eventEnd = Buffer.from('\n\n')

export interface Batch {
  /** Cursor of the next read. */
  next: number
  /** Null if no entry matched the query. */
  events: Buffer | null
}

type Place = Pick<ReadQuery, 'after' | 'hostId' | 'stream'>

const entriesPerRead = 500
/** Batches of about 256 KiB each, enough for the followers of a few tasks. */
const keptBatches = 32

/**
 * Caches the batches that followers read recently, so that many followers of one task share one read and one buffer.
 * Entries never go stale, because what is stored after a cursor never changes.
 */
export class Batches {
  readonly #outputs: Pick<Outputs, 'readLines'>
  readonly #areSeveral: (taskId: string) => boolean
  readonly #kept = new BoundedMap<string, Promise<Batch>>(keptBatches)

  /** `areSeveral`: whether a task has more than one follower. Batches of a single follower are not cached. */
  constructor(outputs: Pick<Outputs, 'readLines'>, areSeveral: (taskId: string) => boolean) {
    this.#outputs = outputs
    this.#areSeveral = areSeveral
  }

  /** Reads on from a place; `next` equals `after` at the current end. */
  async after(taskId: string, place: Place, nameOf: (hostId: number) => string): Promise<Batch> {
    if (!this.#areSeveral(taskId)) return this.#read(taskId, place, nameOf)
    const key = `${taskId} ${place.after} ${place.hostId ?? ''} ${place.stream ?? ''}`
    const kept = this.#kept.get(key)
    if (kept) {
      const batch = await kept
      // A read that found nothing may have begun before an entry was appended.
      if (batch.next !== place.after) return batch
    }
    const reading = this.#read(taskId, place, nameOf)
    this.#kept.set(key, reading)
    try {
      const batch = await reading
      if (batch.next === place.after) this.#forget(key, reading)
      return batch
    } catch (error) {
      this.#forget(key, reading)
      throw error
    }
  }

  async #read(taskId: string, place: Place, nameOf: (hostId: number) => string): Promise<Batch> {
    const { lines, next } = await this.#outputs.readLines(taskId, { ...place, limit: entriesPerRead })
    if (lines.length === 0) return { next, events: null }
    return { next, events: Buffer.concat(lines.flatMap((line) => outputEvent(line, nameOf(line.hostId)))) }
  }

  #forget(key: string, reading: Promise<Batch>): void {
    if (this.#kept.get(key) === reading) this.#kept.delete(key)
  }
}

/** Formats a stored entry as an event with the fields of `entryToApi`; the text is passed on as stored. */
function outputEvent({ id, json }: StoredLine, hostname: string): [Buffer, Buffer, Buffer] {
  const head = `event: output\nid: ${id}\ndata: {"id":${id},"hostname":${JSON.stringify(hostname)},`
  return [Buffer.from(head), json.subarray(1), eventEnd]
}
