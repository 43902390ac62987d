import type { Host } from '../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'

/** Hosts that stand alike, as `web[1-3]`, and how: `OFFLINE: never heard`. */
export interface Standing {
  readonly names: string
  readonly state: string
}

/** Hosts folded by their status and its reason. */
export function foldStanding(
  hosts: readonly Pick<Host, 'hostname' | 'status' | 'statusReason'>[],
): Standing[] {
  const states = new Map<string, string[]>()
  for (const { hostname, status, statusReason } of hosts) {
    const state = statusReason === null ? status : `${status}: ${statusReason}`
    const alike = states.get(state)
    if (alike === undefined) states.set(state, [hostname])
    else alike.push(hostname)
  }
  return [...states].map(([state, names]) => ({ names: foldNodeset(names), state }))
}
