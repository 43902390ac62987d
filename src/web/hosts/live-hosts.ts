import { Mutex } from '../../core/mutex.ts'
import type { HostEvent } from '../../core/protocol/http/events.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { pause } from '../../net/backoff.ts'
import { all, errorText, followStream } from '../api.ts'
import { session } from '../session.ts'
import { createStore } from '../store.ts'

export interface LiveHosts {
  hosts: readonly Host[]
  /**
   * `live`: from the event stream; `polled`: without one; `lost`: the server is unreachable, so the list is
   * as of `at`; `loading`: before the first answer.
   */
  freshness: 'loading' | 'live' | 'polled' | 'lost'
  /** Last answer of the server, milliseconds since the epoch; null before the first. */
  at: number | null
  fault: string
}

const unread: LiveHosts = { hosts: [], freshness: 'loading', at: null, fault: '' }

/** Known hosts, kept across pages and while the server is unreachable. */
export const liveHosts = createStore<LiveHosts>(unread)
session.subscribe(() => {
  // The next user may see other hosts.
  if (session.get() === undefined) liveHosts.set(unread)
})

/** Milliseconds of silence of the stream, as behind a buffering proxy, after which the list is polled. */
const patience = 2_000
const pollInterval = 10_000

/** Natural order: web2 before web10. */
const byName = new Intl.Collator('en', { numeric: true })
const sorted = (hosts: Iterable<Host>) =>
  [...hosts].sort((one, other) => byName.compare(one.hostname, other.hostname))

/** Keeps `liveHosts` up to date until `signal` aborts. */
export async function followHosts(signal: AbortSignal): Promise<void> {
  const byId = new Map(liveHosts.get().hosts.map((host) => [host.id, host]))
  let isLive = false
  /** False until the list is read, and again after a lost connection: events alone are not the whole list. */
  let isWhole = false
  const publish = () => {
    if (!isWhole || signal.aborted) return
    const freshness = isLive ? 'live' : 'polled'
    liveHosts.set({ hosts: sorted(byId.values()), freshness, at: Date.now(), fault: '' })
  }
  liveHosts.update((now) => ({ ...now, freshness: 'loading' }))
  /** Hosts changed by events during a read: events are newer than its answer. */
  let changed = new Set<number>()
  async function read(): Promise<void> {
    changed = new Set()
    const hosts = await all<Host>('api/hosts')
    for (const id of byId.keys()) if (!changed.has(id)) byId.delete(id)
    for (const host of hosts) if (!changed.has(host.id)) byId.set(host.id, host)
    isWhole = true
    publish()
  }
  const reads = new Mutex()
  const refresh = () =>
    reads.run(read).catch((error: unknown) => {
      if (!signal.aborted) liveHosts.update((now) => ({ ...now, freshness: 'lost', fault: errorText(error) }))
    })
  function apply(event: HostEvent): void {
    changed.add(event.host.id)
    if (event.change === 'removed') byId.delete(event.host.id)
    else byId.set(event.host.id, event.host)
    publish()
  }
  async function poll(): Promise<void> {
    await pause(patience, signal)
    while (!signal.aborted) {
      if (!isLive || !isWhole) await refresh()
      await pause(pollInterval, signal)
    }
  }
  const polling = poll()
  try {
    await followStream('api/events?type=host', {
      signal,
      onEvent({ event, data }) {
        const wasLive = isLive
        isLive = true
        if (event === 'reset' || !wasLive) void refresh()
        if (event === 'host') apply(JSON.parse(data) as HostEvent)
      },
      onCut() {
        isLive = false
        isWhole = false
        void refresh()
      },
    })
  } catch {
    // The list itself reports errors that retries cannot fix.
    isLive = false
  }
  await polling
}
