import { type AgentState, leastFreePercent } from '../hosts/agent-state.ts'
import type { Setting } from '../protocol/http/hosts.ts'
import { type Examination, gather } from './examine-host.ts'
import { type CheckResult, finding } from './finding.ts'
import { linkAdvice } from './link-trouble.ts'
import { checkClock, checkContainment, checkLimits, checkUser } from './setting-checks.ts'

/** Percent free on the data directory's disk below which a warning is due. */
const littleRoom = 10

/** Other agents that the note lists. */
const mostNamed = 3

type ReportedField =
  | 'hostId'
  | 'url'
  | 'onDemand'
  | 'linked'
  | 'reason'
  | 'lastHeartbeatAt'
  | 'heartbeatFault'
  | 'clockOffsetSeconds'
  | 'terminalLack'

export interface AgentFacts extends Setting, Pick<AgentState, ReportedField> {
  readonly pid: number
  readonly isStopped: boolean
  readonly dataDir: string
  /** Percent free on the disk of its data directory; null if unknown. */
  readonly freePercent: number | null
  readonly others: readonly { readonly pid: number; readonly user: string }[]
}

/** Whether a script for this host would reach it; decides the exit code of `rsm agent status`. */
export function isReachable(facts: AgentFacts): boolean {
  if (facts.isStopped || facts.hostId === null) return false
  const heartbeats = facts.lastHeartbeatAt !== null && facts.heartbeatFault === null
  return facts.linked || (facts.onDemand && heartbeats && facts.reason === null)
}

function checkProcess({ pid, isStopped }: AgentFacts): CheckResult {
  if (!isStopped) return null
  return [
    finding(
      'stopped',
      'error',
      `its process is suspended: this report is out of date`,
      `\`kill -CONT ${pid}\``,
    ),
  ]
}

/** Reports one cause only, because without heartbeats there is no link either. */
function checkConnection(facts: AgentFacts): CheckResult {
  const { hostId, url, reason, heartbeatFault } = facts
  if (hostId === null) {
    const why = reason === null ? 'it is registering with its server' : `it is not registered yet: ${reason}`
    return [
      finding('not-registered', 'error', why, reason === null ? 'check again' : linkAdvice(reason, url)),
    ]
  }
  if (heartbeatFault !== null)
    return [
      finding(
        'silent',
        'error',
        `no heartbeat reaches the server: ${heartbeatFault}`,
        linkAdvice(heartbeatFault, url),
      ),
    ]
  if (facts.linked) return null
  if (reason !== null)
    return [finding('link-down', 'error', `it has no link: ${reason}`, linkAdvice(reason, url))]
  return facts.onDemand ? 'it links when there is work' : null
}

function checkDisk({ dataDir, freePercent }: AgentFacts): CheckResult {
  if (freePercent === null) return null
  const room = `${Math.floor(freePercent)} % free on the disk of ${dataDir}`
  if (freePercent >= littleRoom) return room
  const severity = freePercent < leastFreePercent ? 'error' : 'warning'
  return [
    finding(
      'disk',
      severity,
      `${room}: it must hold output of scripts`,
      `free up space: \`df -h ${dataDir}\``,
    ),
  ]
}

function checkOthers({ others }: AgentFacts): CheckResult {
  if (others.length === 0) return null
  const named = others.slice(0, mostNamed).map(({ pid, user }) => `pid ${pid} of ${user}`)
  if (others.length > mostNamed) named.push(`${others.length - mostNamed} more`)
  return [
    finding(
      'other-agents',
      'note',
      `other agents run on this host: ${named.join(', ')}`,
      'each needs its own data directory and hostname; stop unwanted ones',
    ),
  ]
}

function checkTerminals({ hostId, terminalLack }: AgentFacts): CheckResult {
  if (hostId === null || terminalLack === null) return null
  return [
    finding(
      'terminal',
      'note',
      `no terminal can be opened here: ${terminalLack}`,
      '`rsm exec` works without one',
    ),
  ]
}

export function examineAgent(facts: AgentFacts): Examination {
  return gather([
    checkProcess(facts),
    checkConnection(facts),
    checkDisk(facts),
    checkClock(facts.clockOffsetSeconds),
    checkOthers(facts),
    checkUser(facts),
    checkContainment(facts),
    checkLimits(facts),
    checkTerminals(facts),
  ])
}
