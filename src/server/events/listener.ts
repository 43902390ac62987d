import type { EventType } from '../../core/protocol/http/events.ts'
import { formatEvent } from '../../core/protocol/sse.ts'
import type { Ring } from './ring.ts'

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
        if (!ring.holds(place)) {
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
