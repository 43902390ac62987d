import { highMeasures, type Measure } from '../host-status.ts'
import { type Finding, finding, type Look } from './finding.ts'
import { type HostFacts, isHeard } from './host-facts.ts'
import { span } from './words.ts'

/** Percent at which a disk counts as full. */
const full = 98
/** Reports that may be missing before they are missed. */
const missingReports = 3

/** What shows who takes it; a path that would need quoting is not put into a command. */
function adviceOn({ name }: Measure): string {
  if (name === 'cpu') return "rsm exec -w HOST -- 'ps aux --sort=-%cpu | head'"
  if (name === 'memory') return "rsm exec -w HOST -- 'ps aux --sort=-rss | head'"
  const mount = name.slice('disk '.length)
  const path = /^\/[\w./-]*$/.test(mount) ? mount : '/'
  return `rsm exec -w HOST -- 'du -xh -d2 ${path} | sort -h | tail'`
}

function findingOf(measure: Measure, then: string): Finding {
  const { name, percent } = measure
  const isDisk = name.startsWith('disk ')
  const code = isDisk ? 'disk' : name === 'cpu' ? 'cpu' : 'memory'
  const severity = isDisk && percent >= full ? 'error' : 'warning'
  const state = isDisk ? 'full' : 'in use'
  const message = `${name} ${Math.floor(percent)} % ${state}${then}`
  return finding(code, severity, message, adviceOn(measure), `${name} nearly all ${state}`)
}

/** Cpu, memory and disks, by the last report; of a silent host that is what was when it fell silent. */
export function lookAtLoad(facts: HostFacts): Look {
  const { host, now, server } = facts
  const { metrics, agent } = host
  if (agent === null) return null
  const interval = server?.metricsInterval
  const reportedAt = Date.parse(metrics?.timestamp ?? agent.registeredAt)
  const age = Math.max(0, (now - reportedAt) / 1000)
  if (isHeard(facts) && interval !== undefined && age > missingReports * interval + 10)
    return [
      finding(
        'metrics',
        'note',
        `no report of cpu, memory and disks for ${span(age)}`,
        'on HOST: the log of the agent says why (journalctl -u rsm-agent)',
        'no report of cpu, memory and disks',
      ),
    ]
  if (metrics === null) return null
  const high = highMeasures(metrics, host.status === 'WARNING')
  if (high.length === 0) return isHeard(facts) ? 'cpu, memory and disks have room' : null
  const then = isHeard(facts) ? '' : `, when last heard of ${span(age)} ago`
  return high.map((measure) => findingOf(measure, then))
}
