import {
  adviceFor,
  complains,
  type Finding,
  foldFindings,
  markedAdviceFor,
  type Severity,
} from '../../core/checks/finding.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { columnsOf, paint } from '../text/screen.ts'
import { withLocalTimes } from '../text/time.ts'
import { wrapAdvice, wrapWords } from '../text/width.ts'
import type { ExaminedHost, ExaminedServer } from './doctor.ts'
import { standingOf } from './standing.ts'

const tones = { error: 'red', warning: 'yellow', note: 'dim', ok: 'green' } as const
const margin = 'warning  '.length
/** Columns for wrapped text at least. */
const narrowest = 20

/** A finding, followed by advice with marked commands. */
function block(
  severity: Severity | 'ok',
  message: string,
  { advice, columns }: { advice?: string; columns: number | undefined },
): string {
  const room = columns === undefined ? undefined : Math.max(narrowest, columns - margin)
  const lines = wrapWords(sanitizeLine(withLocalTimes(message)), room)
  if (advice !== undefined) lines.push(...wrapAdvice(sanitizeLine(advice), room))
  return (
    paint(tones[severity], severity) +
    ' '.repeat(margin - severity.length) +
    lines.join(`\n${' '.repeat(margin)}`)
  )
}

/** One or two lines per finding, and one for everything that is fine; `name`: the examined host or server. */
export function findingLines(
  { findings, well }: { findings: readonly Finding[]; well: readonly string[] },
  name: string,
  columns: number | undefined = columnsOf(process.stdout),
): string[] {
  const lines = findings.map((each) =>
    block(each.severity, each.message, { advice: markedAdviceFor(each, name), columns }),
  )
  return well.length === 0 ? lines : [...lines, block('ok', well.join('; '), { columns })]
}

export function showHost(examined: ExaminedHost, columns = columnsOf(process.stdout)): string {
  const { hostname } = examined.host
  const head = `${hostname} is ${standingOf(examined.host)}`
  const heading = wrapWords(sanitizeLine(withLocalTimes(head)), columns)
  return [...heading, ...findingLines(examined, hostname, columns)].join('\n')
}

/** Many hosts: the server's findings first, then equal findings under their node set, worst first. */
export function showFleet(
  server: ExaminedServer,
  hosts: readonly ExaminedHost[],
  columns = columnsOf(process.stdout),
): string {
  const ofServer = server.findings.map((each) =>
    block(each.severity, `server ${server.url}: ${each.message}`, { advice: each.advice, columns }),
  )
  const ofHosts = foldFindings(hosts).map(({ finding, hostnames, message }) => {
    const [only = ''] = hostnames
    const advice = hostnames.length === 1 ? markedAdviceFor(finding, only) : finding.advice
    const isOfAll = hosts.length > 2 && hostnames.length === hosts.length
    const subject = isOfAll ? `all ${hosts.length} hosts` : foldNodeset(hostnames)
    return block(finding.severity, `${subject}: ${message}`, { advice, columns })
  })
  return [...ofServer, ...ofHosts, balance(hosts)].join('\n')
}

function balance(hosts: readonly ExaminedHost[]): string {
  if (hosts.length === 0) return 'no hosts yet: rsm hosts join'
  const bad = hosts.filter(({ findings }) => complains(findings)).length
  if (bad > 0 && bad < hosts.length) return `problems found on ${bad} of ${hosts.length} hosts`
  const found = bad === 0 ? 'no problems found' : 'problems found'
  if (hosts.length === 1) return `${found} on the host`
  if (hosts.length === 2) return `${found} on ${bad === 0 ? 'either host' : 'both hosts'}`
  return `${found} on ${bad === 0 ? 'any of the' : 'all'} ${hosts.length} hosts`
}

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
