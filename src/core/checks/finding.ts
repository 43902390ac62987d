import type { Host } from '../protocol/http/hosts.ts'
import type { ServerInfo } from '../protocol/http/server.ts'

/** Intervals after which a late heartbeat is reported, before the host is OFFLINE. */
const lateFactor = 1.5

/** error: no script can run there; warning: something is wrong; note: a property of the host worth knowing. */
export const severities = ['error', 'warning', 'note'] as const
export type Severity = (typeof severities)[number]

/** Findings of the commands `doctor` and `agent status`; a closed set that programs may rely on. */
export type FindingCode =
  | 'never-joined'
  | 'revoked'
  | 'silent'
  | 'late'
  | 'link-down'
  | 'duplicate'
  | 'degraded'
  | 'clock'
  | 'version'
  | 'disk'
  | 'memory'
  | 'cpu'
  | 'metrics'
  | 'waiting'
  | 'containment'
  | 'root'
  | 'limits'
  | 'terminal'
  | 'status'
  | 'certificate'
  | 'plain-http'
  | 'not-ready'
  | 'restored'
  | 'clock-jumped'
  | 'not-registered'
  | 'stopped'
  | 'other-agents'
  | 'data-directory'
  | 'store'
  | 'newer'
  | 'journal-tail'
  | 'keys'
  | 'permissions'
  | 'output'
  | 'results'
  | 'recording'
  | 'file'
  | 'script-version'
  | 'audit-log'
  | 'clock-file'
  | 'orphans'
  | 'port'
  | 'lock'
  | 'writes'
  | 'software'
  | 'upgrade'

export interface Finding {
  readonly code: FindingCode
  readonly severity: Severity
  /** The fault with its figures; without the host's name. */
  readonly message: string
  /** The fault without details of one host: findings of several hosts fold under it. */
  readonly title: string
  /** Next step; `HOST` stands for the host's name, and commands are in backticks. */
  readonly advice: string
}

/** Result of one check: findings; a few words if it passed; null if unknown or not applicable. */
export type CheckResult = readonly Finding[] | string | null

export interface HostFacts {
  readonly host: Host
  /** URL of the server, as the caller knows it. */
  readonly url: string
  /** Null if the server is too old to report it. */
  readonly server: ServerInfo | null
  /** Milliseconds since 1970 by the server's clock. */
  readonly now: number
  /** Running tasks that wait for this host; null if not counted. */
  readonly waiting: number | null
}

interface FoldedFinding {
  readonly finding: Finding
  readonly hostnames: readonly string[]
  /** With figures if they are the same on all hosts, else without. */
  readonly message: string
}

export function finding(
  code: FindingCode,
  severity: Severity,
  message: string,
  advice: string,
  title = message,
): Finding {
  return { code, severity, message, title, advice }
}

/** Advice for a host, or for several: then `HOST` stays, and stands for each of them. */
export function markedAdviceFor({ advice }: Pick<Finding, 'advice'>, hostname: string): string {
  return advice.replaceAll(/\bHOST\b/g, hostname)
}

/** Advice without the backticks of its commands. */
export function adviceFor(found: Pick<Finding, 'advice'>, hostname: string): string {
  return markedAdviceFor(found, hostname).replaceAll('`', '')
}

/** Worst first; within a severity the order stays. */
export function worstFirst(findings: readonly Finding[]): Finding[] {
  return severities.flatMap((severity) => findings.filter((each) => each.severity === severity))
}

/** Whether anything is wrong; notes do not count. */
export function complains(findings: readonly Pick<Finding, 'severity'>[]): boolean {
  return findings.some(({ severity }) => severity !== 'note')
}

/** Whether the agent sends heartbeats; if not, all other facts are from when it last did. */
export function isHeard({ host }: HostFacts): boolean {
  return host.agent !== null && host.status !== 'OFFLINE'
}

/** Whether a heartbeat is overdue although the host is not OFFLINE yet; false if the server reports no interval. */
export function isLate(facts: HostFacts): boolean {
  const silent = secondsSilent(facts)
  const interval = facts.server?.heartbeatInterval
  return isHeard(facts) && silent !== null && interval !== undefined && silent > lateFactor * interval + 1
}

/** Seconds since the last heartbeat; null if there was none. */
export function secondsSilent({ host, now }: HostFacts): number | null {
  const at = host.agent?.lastHeartbeatAt
  return at === null || at === undefined ? null : Math.max(0, (now - Date.parse(at)) / 1000)
}

/** Folds findings with the same words and advice: the worst first, then those of the most hosts. */
export function foldFindings(
  hosts: readonly { readonly hostname: string; readonly findings: readonly Finding[] }[],
): FoldedFinding[] {
  const groups = new Map<string, { finding: Finding; hostnames: string[]; messages: Set<string> }>()
  for (const { hostname, findings } of hosts)
    for (const each of findings) {
      const key = [each.severity, each.code, each.title, each.advice].join('\n')
      const group = groups.get(key) ?? { finding: each, hostnames: [], messages: new Set() }
      groups.set(key, group)
      group.hostnames.push(hostname)
      group.messages.add(each.message)
    }
  const rank = ({ severity }: Finding) => severities.indexOf(severity)
  return [...groups.values()]
    .sort((a, b) => rank(a.finding) - rank(b.finding) || b.hostnames.length - a.hostnames.length)
    .map(({ finding, hostnames, messages }) => ({
      finding,
      hostnames,
      message: messages.size === 1 ? finding.message : finding.title,
    }))
}
