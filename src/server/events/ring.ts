import { randomBytes } from 'node:crypto'
import { BoundedMap } from '../../core/bounded-map.ts'
import type { EventType, ResetEvent } from '../../core/protocol/http/events.ts'
import { formatEvent } from '../../core/protocol/wire-text.ts'

interface Frame {
  type: EventType
  bytes: Buffer
}

/** Next bytes for all listeners at one place; null if no event matched. */
interface Batch {
  bytes: Buffer | null
  /** Number of its last event. */
  upTo: number
}

interface RingLimits {
  frames: number
  bytes: number
  /** Limit of one batch; a larger frame is sent alone. */
  batchBytes: number
}

/** Batches cached until the next event, by place and types. */
const rememberedBatches = 16

/**
 * The latest events as formatted bytes, numbered without gaps; new ones evict the oldest. A listener is only a
 * position, so memory does not depend on the number or speed of listeners.
 */
export class Ring {
  /** Identifies this run of the server, so that event numbers of earlier runs are not mistaken for current ones. */
  readonly epoch = randomBytes(6).toString('hex')
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

  append(type: EventType, format: (id: string) => string): void {
    const number = ++this.last
    const bytes = Buffer.from(format(this.idOf(number)))
    this.#frames.set(number, { type, bytes })
    this.#bytes += bytes.length
    while (this.#frames.size > this.#limits.frames || this.#bytes > this.#limits.bytes) this.#dropOldest()
    this.#batches.clear()
  }

  /** Invalidates all positions, because events were missed. */
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

  /** Position of an event id from a client, or why the client cannot resume there. */
  placeOf(id: string): number | ResetEvent['reason'] {
    const [epoch, digits] = id.split('-')
    const number = Number(digits)
    if (!/^[0-9a-f]{12}-\d{1,15}$/.test(id)) return 'UNKNOWN'
    if (epoch !== this.epoch) return 'RESTARTED'
    if (number > this.last) return 'UNKNOWN'
    return this.has(number) ? number : 'BEHIND'
  }

  /** Whether all events after this number are still in the ring. */
  has(number: number): boolean {
    return number >= this.#oldest - 1
  }

  /** The batch after `number` with events of these types. */
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

  /** Calls `listener` when there may be new events; returns a function that unsubscribes. */
  onNews(listener: () => void): () => void {
    this.#waiting.add(listener)
    return () => this.#waiting.delete(listener)
  }

  /** Wakes listeners, separately from `append`, so that changes published together wake them once. */
  wake(): void {
    for (const listener of this.#waiting) listener()
  }
}

export interface ListenOptions {
  /** Id of the last event that the client received. */
  after: string | undefined
  types: ReadonlySet<EventType>
}

/** One stream of events: a position in the ring, of constant size. */
export interface EventListener {
  /** Take the next batch once the last one is sent. A listener that falls behind the ring gets `reset`. */
  batches(signal: AbortSignal): AsyncGenerator<string | Buffer>
  /** Keep-alive comment with the position, so that a client that filters events does not fall out of the ring. */
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
