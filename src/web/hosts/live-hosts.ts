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
   * How new it is: `live` by the stream of events, `polled` where there is none, for now; `lost` while the server can't be
   * asked, so that the list is of `at`; `loading` before the first answer.
   */
  freshness: 'loading' | 'live' | 'polled' | 'lost'
  /** When the server was last heard, in milliseconds since the epoch; null before the first answer. */
  at: number | null
  /** Why the server can't be asked. */
  fault: string
}

const unread: LiveHosts = { hosts: [], freshness: 'loading', at: null, fault: '' }

/** What is known of the hosts, from one page to the next: none is lost because the server can't be reached just now. */
export const liveHosts = createStore<LiveHosts>(unread)
session.subscribe(() => {
  // The next user may see others.
  if (session.get() === undefined) liveHosts.set(unread)
})

/** Where the stream says nothing for so long, as behind a proxy that holds it back, the list is asked for again and again. */
const patience = 2_000
const pollInterval = 10_000

/** Numbers in names count as numbers: web2 comes before web10. */
const byName = new Intl.Collator('en', { numeric: true })
const sorted = (hosts: Iterable<Host>) =>
  [...hosts].sort((one, other) => byName.compare(one.hostname, other.hostname))

/** Keeps `liveHosts` as the server has them until `signal` ends it. */
export async function followHosts(signal: AbortSignal): Promise<void> {
  const byId = new Map(liveHosts.get().hosts.map((host) => [host.id, host]))
  let isLive = false
  /** False until the list has been read, and again from a cut on: what the stream tells is no list. */
  let isWhole = false
  const publish = () => {
    if (!isWhole || signal.aborted) return
    const freshness = isLive ? 'live' : 'polled'
    liveHosts.set({ hosts: sorted(byId.values()), freshness, at: Date.now(), fault: '' })
  }
  liveHosts.update((now) => ({ ...now, freshness: 'loading' }))
  /** Answers are taken in the order in which they were asked for; events that came meanwhile are newer. */
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
    // What waiting does not mend is said by the list itself, where it concerns that too.
    isLive = false
  }
  await polling
}
