import { shownStatus } from '../hosts/host-status.ts'
import { complains, type Finding, finding, type Look, worstFirst } from './finding.ts'
import type { HostFacts } from './host-facts.ts'
import { lookAtLoad } from './load-checks.ts'
import { lookAtHealth, lookAtHeartbeats, lookAtIdentity, lookAtLink, lookAtWork } from './presence-checks.ts'
import {
  lookAtClock,
  lookAtContainment,
  lookAtLimits,
  lookAtTerminals,
  lookAtUser,
  lookAtVersion,
} from './setting-checks.ts'

/** What is the matter with a host, and what was looked at and is well. */
export interface Examination {
  /** Worst first. */
  readonly findings: readonly Finding[]
  /** A few words for each thing that is as it should be. */
  readonly well: readonly string[]
}

const looks: readonly ((facts: HostFacts) => Look)[] = [
  lookAtHeartbeats,
  lookAtIdentity,
  lookAtLink,
  lookAtHealth,
  lookAtWork,
]

/** Looks at what an agent said before it went away, if it has. */
const settingLooks: readonly ((facts: HostFacts) => Look)[] = [
  lookAtLoad,
  ({ host }) => lookAtClock(host.agent?.clockOffsetSeconds ?? null),
  lookAtVersion,
  ({ host }) => host.agent && lookAtUser(host.agent),
  ({ host }) => host.agent && lookAtContainment(host.agent),
  ({ host }) => host.agent && lookAtLimits(host.agent),
  lookAtTerminals,
]

/** Drops notes: they explain no fault. */
const complaintsOf = (look: Look): Look =>
  typeof look === 'string' || look === null ? null : look.filter(({ severity }) => severity !== 'note')

export function gather(looked: readonly Look[]): Examination {
  const findings = looked.flatMap((look) => (look === null || typeof look === 'string' ? [] : look))
  return { findings: worstFirst(findings), well: looked.filter((look) => typeof look === 'string') }
}

/** What servers before this release do not tell of an agent is as what an agent has not said. */
const unsaid = {
  reachable: false,
  linkLostAt: null,
  onDemand: null,
  linkFault: null,
  statusReason: null,
  clockOffsetSeconds: null,
}

function withUnsaid(facts: HostFacts): HostFacts {
  const { host } = facts
  return { ...facts, host: { ...host, agent: host.agent && { ...unsaid, ...host.agent } } }
}

/**
 * Why a host is not as it should be: a decision on what the REST API tells of it, made where it is asked for, so that it
 * works with older servers too.
 */
export function examineHost(given: HostFacts): Examination {
  const facts = withUnsaid(given)
  const isAway = ['NO LINK', 'OFFLINE'].includes(shownStatus(facts.host))
  const found = gather([
    ...looks.map((look) => look(facts)),
    ...settingLooks.map((look) => (isAway ? complaintsOf(look(facts)) : look(facts))),
  ])
  const { status, statusReason } = facts.host
  if (status === 'ONLINE' || complains(found.findings)) return found
  // A reason that this release does not know is a newer server's.
  const other = finding('status', 'warning', statusReason ?? `it is ${status}`, '`rsm hosts show HOST`')
  return { findings: worstFirst([other, ...found.findings]), well: found.well }
}
