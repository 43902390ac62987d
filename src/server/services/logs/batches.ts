import { BoundedMap } from '../../../core/bounded-map.ts'
import type { Outputs, ReadQuery, StoredLine } from '../../storage/ports/outputs.ts'

const eventEnd = Buffer.from('\n\n')

/** Stored output as the events of one write. */
export interface Batch {
  /** The cursor to go on from. */
  next: number
  /** Null where nothing fitted the query. */
  events: Buffer | null
}

type Place = Pick<ReadQuery, 'after' | 'hostId' | 'stream'>

const entriesPerRead = 500
/** Of about 256 KiB each: what the followers of a few tasks are at. */
const keptBatches = 32

/**
 * The batches that followers read of late. What many followers of one task get is read and put together once, and held
 * once however many sockets have not taken it yet: what is stored after a cursor never changes.
 */
export class Batches {
  readonly #outputs: Pick<Outputs, 'readLines'>
  readonly #areSeveral: (taskId: string) => boolean
  readonly #kept = new BoundedMap<string, Promise<Batch>>(keptBatches)

  /** `areSeveral`: whether a task has more than one follower. For one alone nothing is held: it would only be in the way. */
  constructor(outputs: Pick<Outputs, 'readLines'>, areSeveral: (taskId: string) => boolean) {
    this.#outputs = outputs
    this.#areSeveral = areSeveral
  }

  /** What follows a place; `next` is `after` when that is the end for now. */
  async after(taskId: string, place: Place, nameOf: (hostId: number) => string): Promise<Batch> {
    if (!this.#areSeveral(taskId)) return this.#read(taskId, place, nameOf)
    const key = `${taskId} ${place.after} ${place.hostId ?? ''} ${place.stream ?? ''}`
    const kept = this.#kept.get(key)
    if (kept) {
      const batch = await kept
      // A read that found nothing may have begun before there was something.
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

/** The event of a stored piece, of the same fields as `entryToApi`; the text is passed on as it is stored. */
function outputEvent({ id, json }: StoredLine, hostname: string): [Buffer, Buffer, Buffer] {
  const head = `event: output\nid: ${id}\ndata: {"id":${id},"hostname":${JSON.stringify(hostname)},`
  return [Buffer.from(head), json.subarray(1), eventEnd]
}
