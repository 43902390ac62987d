import type { Host } from '../protocol/http/hosts.ts'
import type { ServerInfo } from '../protocol/http/server.ts'

/** Intervals after which a late heartbeat is reported, before the host is OFFLINE. */
const lateFactor = 1.5

/** error: no script can run there; warning: something is wrong; note: a property of the host that one should know. */
export const severities = ['error', 'warning', 'note'] as const
export type Severity = (typeof severities)[number]

/** What `rsm hosts doctor`, `rsm agent status` and `rsm server doctor` find; a closed set that programs may rely on. */
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

/** One thing that is not as it should be. */
export interface Finding {
  readonly code: FindingCode
  readonly severity: Severity
  /** What is the matter, with its figures; without the host's name. */
  readonly message: string
  /** The same without what differs from host to host: findings of several hosts fold under these words. */
  readonly title: string
  /** What to do or type next; `HOST` stands for the host's name, and commands stand between backticks. */
  readonly advice: string
}

/** What a look at one thing comes to: what is wrong with it, a few words where it is well, null where it can't be told. */
export type CheckResult = readonly Finding[] | string | null

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

/** Hosts of which the same was found. */
interface FoldedFinding {
  readonly finding: Finding
  readonly hostnames: readonly string[]
  /** With figures where all have the same, else without. */
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

/** The advice for one host, or for several: then `HOST` stays, and stands for each of them. */
export function markedAdviceFor({ advice }: Pick<Finding, 'advice'>, hostname: string): string {
  return advice.replaceAll(/\bHOST\b/g, hostname)
}

/** The same without the marks of its commands. */
export function adviceFor(found: Pick<Finding, 'advice'>, hostname: string): string {
  return markedAdviceFor(found, hostname).replaceAll('`', '')
}

/** Worst first; those of one severity stay in the order in which they were found. */
export function worstFirst(findings: readonly Finding[]): Finding[] {
  return severities.flatMap((severity) => findings.filter((each) => each.severity === severity))
}

/** Whether anything is wrong: notes are no complaint. */
export function complains(findings: readonly Pick<Finding, 'severity'>[]): boolean {
  return findings.some(({ severity }) => severity !== 'note')
}

/** Whether its agent is heard; what is known of it else is from when it last was. */
export function isHeard({ host }: HostFacts): boolean {
  return host.agent !== null && host.status !== 'OFFLINE'
}

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

/** Findings with the same words and the same advice together: the worst first, then those of the most hosts. */
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
