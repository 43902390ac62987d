import type { HostEvent } from '../../core/protocol/http/events.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { all, said } from '../api.ts'
import { followStream, pause } from '../event-stream.ts'
import { createStore } from '../store.ts'

export interface LiveHosts {
  hosts: readonly Host[]
  /** How new it is: `live` by the stream of events, `polled` where there is none, for now. */
  freshness: 'loading' | 'live' | 'polled'
  fault: string
}

export const liveHosts = createStore<LiveHosts>({ hosts: [], freshness: 'loading', fault: '' })

/** Where the stream says nothing for so long, as behind a proxy that holds it back, the list is asked for again and again. */
const patience = 2_000
const pollInterval = 10_000

/** Numbers in names count as numbers: web2 comes before web10. */
const byName = new Intl.Collator('en', { numeric: true })
const sorted = (hosts: Iterable<Host>) =>
  [...hosts].sort((one, other) => byName.compare(one.hostname, other.hostname))

/** Keeps `liveHosts` as the server has them until `signal` ends it. */
export async function followHosts(signal: AbortSignal): Promise<void> {
  const byId = new Map<number, Host>()
  let isLive = false
  const show = () =>
    liveHosts.set({ hosts: sorted(byId.values()), freshness: isLive ? 'live' : 'polled', fault: '' })
  /** Answers are taken in the order in which they were asked for; events that came meanwhile are newer. */
  let changed = new Set<number>()
  async function read(): Promise<void> {
    changed = new Set()
    const hosts = await all<Host>('api/hosts')
    for (const id of byId.keys()) if (!changed.has(id)) byId.delete(id)
    for (const host of hosts) if (!changed.has(host.id)) byId.set(host.id, host)
    show()
  }
  let reading = Promise.resolve()
  const refresh = () => {
    reading = reading.then(read).catch((error: unknown) => {
      if (!signal.aborted) liveHosts.update((now) => ({ ...now, fault: said(error) }))
    })
    return reading
  }
  function apply(event: HostEvent): void {
    changed.add(event.host.id)
    if (event.change === 'removed') byId.delete(event.host.id)
    else byId.set(event.host.id, event.host)
    show()
  }
  async function poll(): Promise<void> {
    await pause(patience, signal)
    while (!signal.aborted) {
      if (!isLive) await refresh()
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
        if (event === 'host') apply(JSON.parse(data) as HostEvent)
        else if (event === 'reset' || !wasLive) void refresh()
      },
      onCut() {
        isLive = false
        show()
      },
    })
  } catch {
    // What waiting does not mend is said by the list itself, where it concerns that too.
    isLive = false
  }
  await polling
}
