import type { Host } from '../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { sharedReason, withoutSpans } from './silences.ts'

/** Hosts that stand alike, as `web[1-3]`, and how: `OFFLINE: never heard`. */
export interface Standing {
  readonly names: string
  readonly state: string
}

/** Hosts folded by their status and its reason, however long each has been silent. */
export function foldStanding(
  hosts: readonly Pick<Host, 'hostname' | 'status' | 'statusReason'>[],
): Standing[] {
  const states = new Map<string, { names: string[]; states: string[] }>()
  for (const { hostname, status, statusReason } of hosts) {
    const state = statusReason === null ? status : `${status}: ${statusReason}`
    const key = withoutSpans(state)
    const alike = states.get(key) ?? { names: [], states: [] }
    states.set(key, alike)
    alike.names.push(hostname)
    alike.states.push(state)
  }
  return [...states.values()].map((alike) => ({
    names: foldNodeset(alike.names),
    state: sharedReason(alike.states),
  }))
}
