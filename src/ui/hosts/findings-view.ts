import type { ExaminedHost, ExaminedServer } from '../../client/doctor.ts'
import { adviceFor, complains, type Finding, type Severity } from '../../core/findings/finding.ts'
import { foldFindings } from '../../core/findings/fold-findings.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { paint } from '../text/screen.ts'

const tones = { error: 'red', warning: 'yellow', note: 'dim', ok: 'green' } as const
const margin = 'warning  '.length

/** What is wrong, and below it what to do. */
function block(severity: Severity | 'ok', message: string, advice?: string): string {
  const head = paint(tones[severity], severity) + ' '.repeat(margin - severity.length) + sanitizeLine(message)
  return advice === undefined ? head : `${head}\n${' '.repeat(margin)}${sanitizeLine(advice)}`
}

/** A line or two for each finding, and one for all that is well; `name` stands for what it was found of. */
export function findingLines(
  { findings, well }: { findings: readonly Finding[]; well: readonly string[] },
  name: string,
): string[] {
  const lines = findings.map((each) => block(each.severity, each.message, adviceFor(each, name)))
  return well.length === 0 ? lines : [...lines, block('ok', well.join('; '))]
}

/** One host: its state, all that was found, and what was looked at and is well. */
export function showHost(examined: ExaminedHost): string {
  const { hostname, status, statusReason } = examined.host
  const head = `${hostname} is ${status}${statusReason === null ? '' : `: ${statusReason}`}`
  return [sanitizeLine(head), ...findingLines(examined, hostname)].join('\n')
}

/** Many hosts: equal findings under their node set, worst first; before them what is wrong with their server. */
export function showFleet(server: ExaminedServer, hosts: readonly ExaminedHost[]): string {
  const ofServer = server.findings.map((each) =>
    block(each.severity, `server ${server.url}: ${each.message}`, each.advice),
  )
  const ofHosts = foldFindings(hosts).map(({ finding, hostnames, message }) => {
    const [only = ''] = hostnames
    const advice = hostnames.length === 1 ? adviceFor(finding, only) : finding.advice
    return block(finding.severity, `${foldNodeset(hostnames)}: ${message}`, advice)
  })
  return [...ofServer, ...ofHosts, balance(hosts)].join('\n')
}

function balance(hosts: readonly ExaminedHost[]): string {
  if (hosts.length === 0) return 'no hosts yet: rsm hosts join'
  const good = hosts.filter(({ findings }) => !complains(findings)).length
  if (good === hosts.length)
    return `nothing is wrong with ${good === 1 ? 'the one host' : `all ${good} hosts`}`
  if (good === 0)
    return `something is wrong with ${hosts.length === 1 ? 'the one host' : `all ${hosts.length} hosts`}`
  return `nothing is wrong with ${good} of ${hosts.length} hosts`
}

/** A finding as `--json` has it. */
export function findingData(finding: Finding, name: string) {
  const { code, severity, message } = finding
  return { code, severity, message, advice: adviceFor(finding, name) }
}

/** The same as data; its shape is part of the command's help. */
export function examinationData(server: ExaminedServer | null, hosts: readonly ExaminedHost[]) {
  return {
    server: server && { ...server, findings: server.findings.map((each) => findingData(each, server.url)) },
    hosts: hosts.map(({ host: { id, hostname, status, statusReason }, findings, well }) => ({
      host: hostname,
      id,
      status,
      statusReason,
      findings: findings.map((each) => findingData(each, hostname)),
      well,
    })),
  }
}
