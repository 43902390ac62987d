import type { Host } from '../protocol/http/hosts.ts'
import type { ServerInfo } from '../protocol/http/server.ts'

/** All that is looked at to say what is the matter with a host. */
export interface HostFacts {
  readonly host: Host
  /** Where its server is, as the one who asks knows it. */
  readonly url: string
  /** Null where the server is too old to say. */
  readonly server: ServerInfo | null
  /** Milliseconds since 1970 by the server's clock. */
  readonly now: number
  /** Running tasks that this host takes part in and has not begun; null where nobody counted. */
  readonly waiting: number | null
}

/** Whether its agent is heard; what is known of it else is from when it last was. */
export function isHeard({ host }: HostFacts): boolean {
  return host.agent !== null && host.status !== 'OFFLINE'
}

/** A heartbeat that is so many intervals late is worth a word before the host is OFFLINE. */
const lateFactor = 1.5

/** Whether a heartbeat of a host that is still counted as heard is overdue; false where the server tells no interval. */
export function isLate(facts: HostFacts): boolean {
  const silent = secondsSilent(facts)
  const interval = facts.server?.heartbeatInterval
  return isHeard(facts) && silent !== null && interval !== undefined && silent > lateFactor * interval + 1
}

/** Seconds since the last heartbeat; null where there was none. */
export function secondsSilent({ host, now }: HostFacts): number | null {
  const at = host.agent?.lastHeartbeatAt
  return at === null || at === undefined ? null : Math.max(0, (now - Date.parse(at)) / 1000)
}
