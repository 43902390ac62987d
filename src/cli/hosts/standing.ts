import { shownStatus } from '../../core/hosts/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { sharedReason, withoutSpans } from './silences.ts'

/** Hosts that stand alike, as `web[1-3]`, and how: `OFFLINE: never heard`. */
export interface Standing {
  readonly names: string
  readonly state: string
}

/** The shown status of a host and its reason, each cause once: `OFFLINE: never heard`, `NO LINK for 12 s`. */
export function standingOf(
  host: Pick<Host, 'status' | 'statusReason' | 'agent'>,
  reason = host.statusReason,
): string {
  const shown = shownStatus(host)
  if (reason === null) return shown
  return shown === 'NO LINK' && reason.startsWith('no link ')
    ? reason.replace('no link', shown)
    : `${shown}: ${reason}`
}

/** Hosts folded by their status and its reason, however long each has been silent. */
export function foldStanding(
  hosts: readonly Pick<Host, 'hostname' | 'status' | 'statusReason' | 'agent'>[],
): Standing[] {
  const states = new Map<string, { names: string[]; states: string[] }>()
  for (const host of hosts) {
    const state = standingOf(host)
    const key = withoutSpans(state)
    const alike = states.get(key) ?? { names: [], states: [] }
    states.set(key, alike)
    alike.names.push(host.hostname)
    alike.states.push(state)
  }
  return [...states.values()].map((alike) => ({
    names: foldNodeset(alike.names),
    state: sharedReason(alike.states),
  }))
}
