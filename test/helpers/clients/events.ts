import { EventEmitter, once } from 'node:events'
import type { ExecutionContext } from 'ava'
import { patience } from '../patience.ts'
import type { TestServer } from '../servers/server.ts'
import type { SeenEvent } from './follow.ts'

/** A stream of /api/events that a test reads event by event. */
export interface EventReader {
  /** All events received, in order. */
  readonly seen: SeenEvent[]
  /** Everything but data: comments and bare ids. */
  readonly rest: string[]
  /** The first matching event after those answered before; skips the events before it. */
  next(event: string, fits?: (data: any) => boolean): Promise<SeenEvent>
  /** Settles when the server has ended the stream. */
  readonly ended: Promise<void>
  close(): void
}

export async function readEvents(
  t: ExecutionContext,
  server: Pick<TestServer, 'url' | 'token'>,
  query = '',
  headers: Record<string, string> = {},
): Promise<EventReader> {
  const leave = new AbortController()
  const response = await fetch(`${server.url}/api/events${query}`, {
    headers: { authorization: `Bearer ${server.token}`, ...headers },
    signal: leave.signal,
  })
  if (response.status !== 200 || !response.body) throw new Error(`status ${response.status}`)
  const { body } = response
  const arrivals = new EventEmitter().setMaxListeners(50)
  const seen: SeenEvent[] = []
  const rest: string[] = []
  let passed = 0
  const take = (block: string) => {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? null
    const data = field('data')
    if (data === null) rest.push(block)
    else seen.push({ event: field('event') ?? '', id: field('id'), data: JSON.parse(data) })
  }
  const read = async () => {
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of body) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        take(text.slice(0, end))
        text = text.slice(end + 2)
      }
      arrivals.emit('event')
    }
  }
  const ended = read().catch((error: unknown) => {
    if (!leave.signal.aborted) throw error
  })
  t.teardown(async () => {
    leave.abort()
    await ended.catch(() => undefined)
  })
  return {
    seen,
    rest,
    ended,
    close: () => leave.abort(),
    async next(event, fits = () => true) {
      const signal = AbortSignal.timeout(patience)
      for (;;) {
        const at = seen.findIndex((one, index) => index >= passed && one.event === event && fits(one.data))
        const found = seen[at]
        if (found) {
          passed = at + 1
          return found
        }
        await once(arrivals, 'event', { signal }).catch(() => {
          throw new Error(`no ${event} within ${patience} ms; seen: ${JSON.stringify(seen.slice(-10))}`)
        })
      }
    },
  }
}
