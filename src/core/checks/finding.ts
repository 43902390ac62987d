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
export type Look = readonly Finding[] | string | null

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
