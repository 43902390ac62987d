import type { Api } from '../../client/http/api.ts'
import { watchEvents } from '../../client/services/events.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { FollowOptions } from '../../net/event-stream.ts'

interface Awaited extends FollowOptions {
  /** The awaited hosts; `missing` are names without a host yet. */
  readonly read: () => Promise<{ hosts: readonly Host[]; missing: readonly string[] }>
  readonly isThere: (host: Host) => boolean
}

/**
 * Resolves once every host is there. Reads the state when the event stream starts, so that no change is
 * missed. Rejects for a removed host as `read` does for an unknown name.
 */
export async function awaitHosts(api: Api, options: Awaited): Promise<readonly Host[]> {
  const { read, isThere } = options
  const known = new Map<number, Host>()
  let missing = new Set<string>()
  const open = () => missing.size > 0 || ![...known.values()].every(isThere)
  const readAll = async () => {
    const state = await read()
    known.clear()
    for (const host of state.hosts) known.set(host.id, host)
    missing = new Set(state.missing.map((name) => name.toLowerCase()))
    return open()
  }
  // Usually all are there already; a typo is reported at once.
  if (!(await readAll())) return [...known.values()]
  for await (const event of watchEvents(api, { ...options, types: ['host'] })) {
    if (event.type === 'ready' || event.type === 'reset') {
      if (!(await readAll())) break
    } else if (event.type === 'host') {
      if (event.change === 'removed') {
        if (known.has(event.host.id) && !(await readAll())) break
        continue
      }
      const { host } = event
      if (!known.has(host.id) && !missing.delete(host.hostname.toLowerCase())) continue
      known.set(host.id, host)
      if (!open()) break
    }
  }
  return [...known.values()]
}
