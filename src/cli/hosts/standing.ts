import { shownStatus } from '../../core/hosts/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'

/** Reasons with a time span: hosts that fail together differ only in their seconds. */
const silences =
  /\b(no heartbeat for|no link for|NO LINK for|was last heard|was stopped) (\d+) (s|min|h|days)\b/g

const unitSeconds: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3600, days: 86_400 }

/** Hosts in the same state, as `web[1-3]`, and the state: `OFFLINE: never heard`. */
export interface Standing {
  readonly names: string
  readonly state: string
}

/** Displayed status and reason, without repetition: `OFFLINE: never heard`, `NO LINK for 12 s`. */
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

/** Folds hosts by status and reason, ignoring how long each has been silent. */
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

export const withoutSpans = (reason: string): string => reason.replace(silences, '$1')

/** Common reason of several, with the range of their time spans. */
export function sharedReason(reasons: readonly string[]): string {
  const [first = ''] = reasons
  const silencesOf = reasons.map((reason) => [...reason.matchAll(silences)])
  let at = 0
  return first.replace(silences, (one) => {
    const durations = silencesOf
      .map((each) => each[at])
      .filter((each) => each !== undefined)
      .sort((a, b) => secondsOf(a) - secondsOf(b))
    at++
    const [, words = '', least = '', unit = ''] = durations[0] ?? []
    const [, , most = '', largest = ''] = durations.at(-1) ?? []
    if (least === most && unit === largest) return one
    return `${words} ${least}${unit === largest ? '' : ` ${unit}`} to ${most} ${largest}`
  })
}

const secondsOf = ([, , count = '', unit = '']: readonly string[]) => Number(count) * (unitSeconds[unit] ?? 1)
