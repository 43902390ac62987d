import { canBeReached } from '../../core/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'

/** How a fleet counts a host: no script reaches a host that sends heartbeats but has no link. */
export type HostState = Host['status'] | 'no link'

export function hostState(host: Pick<Host, 'status' | 'agent'>): HostState {
  return host.status !== 'OFFLINE' && !canBeReached(host) ? 'no link' : host.status
}
