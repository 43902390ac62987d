import { randomBytes } from 'node:crypto'
import { BoundedMap } from '../../core/bounded-map.ts'
import type { EventType, ResetEvent } from '../../core/protocol/http/events.ts'
import { formatEvent } from '../../core/protocol/wire-text.ts'

interface Frame {
  type: EventType
  bytes: Buffer
}

/** What a listener sends next, shared by all who stand at the same place; null bytes: nothing of it was wanted. */
interface Batch {
  bytes: Buffer | null
  /** The number up to which it goes. */
  upTo: number
}

interface RingLimits {
  frames: number
  bytes: number
  /** Of one batch; a frame that is larger goes alone. */
  batchBytes: number
}

/** Distinct places of listeners whose next batch is remembered until the next frame comes. */
const rememberedBatches = 16

/**
 * The last events, ready to be sent and numbered without gaps; the oldest make room for new ones. A listener is nothing
 * but a number here: however many there are and however slow, the memory is that of the ring.
 */
export class Ring {
  /** Names this life of the server, so that an event number of an earlier life is not mistaken for one of this. */
  readonly epoch = randomBytes(6).toString('hex')
  /** The number of the newest event. */
  last = 0
  #oldest = 1
  #bytes = 0
  readonly #limits: RingLimits
  readonly #frames = new Map<number, Frame>()
  readonly #batches = new BoundedMap<string, Batch>(rememberedBatches)
  readonly #waiting = new Set<() => void>()

  constructor(limits: RingLimits) {
    this.#limits = limits
  }

  /** `format` makes the text of the event from its id. */
  append(type: EventType, format: (id: string) => string): void {
    const number = ++this.last
    const bytes = Buffer.from(format(this.idOf(number)))
    this.#frames.set(number, { type, bytes })
    this.#bytes += bytes.length
    while (this.#frames.size > this.#limits.frames || this.#bytes > this.#limits.bytes) this.#dropOldest()
    this.#batches.clear()
  }

  /** Whoever has not got everything up to here has missed something: from now on its place is no longer known. */
  forget(): void {
    this.last++
    this.#oldest = this.last + 1
    this.#frames.clear()
    this.#bytes = 0
    this.#batches.clear()
    this.wake()
  }

  #dropOldest(): void {
    const dropped = this.#frames.get(this.#oldest)
    this.#frames.delete(this.#oldest++)
    this.#bytes -= dropped?.bytes.length ?? 0
  }

  idOf(number: number): string {
    return `${this.epoch}-${number}`
  }

  /** The number behind an id that a client brings back, or why it can't go on from there. */
  placeOf(id: string): number | ResetEvent['reason'] {
    const [epoch, digits] = id.split('-')
    const number = Number(digits)
    if (!/^[0-9a-f]{12}-\d{1,15}$/.test(id)) return 'UNKNOWN'
    if (epoch !== this.epoch) return 'RESTARTED'
    if (number > this.last) return 'UNKNOWN'
    return this.has(number) ? number : 'BEHIND'
  }

  /** Whether everything after this number is still there. */
  has(number: number): boolean {
    return number >= this.#oldest - 1
  }

  /** What follows `number`, of these types. */
  after(number: number, types: ReadonlySet<EventType>): Batch {
    const key = `${number} ${[...types].join()}`
    const known = this.#batches.get(key)
    if (known) return known
    const parts: Buffer[] = []
    let size = 0
    let upTo = number
    while (upTo < this.last) {
      const frame = this.#frames.get(upTo + 1)
      if (frame && types.has(frame.type)) {
        if (size > 0 && size + frame.bytes.length > this.#limits.batchBytes) break
        parts.push(frame.bytes)
        size += frame.bytes.length
      }
      upTo++
    }
    const [only] = parts
    const batch = { bytes: parts.length > 1 ? Buffer.concat(parts) : (only ?? null), upTo }
    this.#batches.set(key, batch)
    return batch
  }

  /** Calls `listener` when there may be something new; answers the way to end that. */
  onNews(listener: () => void): () => void {
    this.#waiting.add(listener)
    return () => this.#waiting.delete(listener)
  }

  /** Told apart from `append`: what changed together wakes everyone once. */
  wake(): void {
    for (const listener of this.#waiting) listener()
  }
}

export interface ListenOptions {
  /** The id of the last event that the client has seen. */
  after: string | undefined
  types: ReadonlySet<EventType>
}

/** One stream of events: a place in the ring, and nothing that grows. */
export interface EventListener {
  /** The caller takes the next batch when it has got rid of the last; one who comes too late is told `reset`. */
  batches(signal: AbortSignal): AsyncGenerator<string | Buffer>
  /**
   * What keeps a silent stream open. With the place that it has come to: whoever hears only of tasks must not fall out of
   * the ring because hosts change.
   */
  comment(): string
}

export function createListener(ring: Ring, { after, types }: ListenOptions): EventListener {
  let place = ring.last

  async function* batches(signal: AbortSignal): AsyncGenerator<string | Buffer> {
    const found = after === undefined ? ring.last : ring.placeOf(after)
    place = typeof found === 'number' ? found : ring.last
    let news: () => void = () => undefined
    const unsubscribe = ring.onNews(() => news())
    const onAbort = () => news()
    signal.addEventListener('abort', onAbort)
    try {
      const id = ring.idOf(place)
      yield formatEvent('ready', { id }, id)
      if (typeof found === 'string') yield formatEvent('reset', { reason: found, id }, id)
      while (!signal.aborted) {
        if (!ring.has(place)) {
          place = ring.last
          const now = ring.idOf(place)
          yield formatEvent('reset', { reason: 'BEHIND', id: now }, now)
        } else if (place === ring.last)
          await new Promise<void>((resolve) => {
            news = resolve
          })
        else {
          const { bytes, upTo } = ring.after(place, types)
          place = upTo
          if (bytes) yield bytes
        }
      }
    } finally {
      unsubscribe()
      signal.removeEventListener('abort', onAbort)
    }
  }

  return { batches, comment: () => `:\nid: ${ring.idOf(place)}\n\n` }
}
