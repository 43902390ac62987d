import { BoundedMap } from '../../../core/bounded-map.ts'
import type { Outputs, ReadQuery, StoredLine } from '../../storage/ports/outputs.ts'

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
