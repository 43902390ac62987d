import { type Finding, severities } from './finding.ts'

/** Hosts of which the same was found. */
export interface FoldedFinding {
  readonly finding: Finding
  readonly hostnames: readonly string[]
  /** With figures where all have the same, else without. */
  readonly message: string
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
