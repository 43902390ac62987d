import { doubtSentence } from '../clock/agreed-time.ts'
import { isInTheClear } from '../endpoint.ts'
import type { ServerInfo, ServerStatus } from '../protocol/http/server.ts'
import { compareVersions } from '../release.ts'
import { clockWords, span } from '../text/duration.ts'
import { type Examination, gather } from './examine-host.ts'
import { type CheckResult, finding } from './finding.ts'
import { clockTolerance } from './setting-checks.ts'

/** Days of validity below which a certificate is a warning, and an error. */
const soon = 30
const verySoon = 7
const day = 86_400

/** The connection from here to the server, and the server's own report. */
export interface ServerFacts {
  readonly url: string
  /** Null if the server is too old to report it. */
  readonly info: ServerInfo | null
  /** Version of this rsm. */
  readonly version: string
  /** Seconds by which the local clock is ahead of the server's; null if unknown. */
  readonly clockOffsetSeconds: number | null
  /** Why it accepts no work; null if it does. */
  readonly notReady: string | null
  /** Null if the server is too old to report it. */
  readonly status: ServerStatus | null
  /** When its certificate expires, milliseconds since 1970; null without TLS, or if not seen. */
  readonly certificateEnds: number | null
  /** Milliseconds since 1970 by the local clock. */
  readonly now: number
}

function checkReadiness({ notReady }: ServerFacts): CheckResult {
  if (notReady === null) return 'accepts work'
  return [
    finding(
      'not-ready',
      'error',
      `it does not accept work: ${notReady}`,
      "look at the server's log and its disk (df -h)",
    ),
  ]
}

function checkRestore({ status }: ServerFacts): CheckResult {
  if (!status?.restore) return null
  const { tasks, executions, reason } = status.restore
  if (executions === 0)
    return [
      finding(
        'restored',
        'note',
        `it was restored from a backup and holds no executions: ${reason}`,
        'schedules and earlier webhook deliveries resume after `rsm server confirm-restore` on its machine',
      ),
    ]
  const held = `${executions} ${executions === 1 ? 'execution' : 'executions'} of ${tasks} ${tasks === 1 ? 'task' : 'tasks'}`
  return [
    finding(
      'restored',
      'error',
      `it was restored from a backup and holds ${held}, which may have run since: ${reason}`,
      'look at what is held (`rsm tasks list --status running`), then on the machine of the server: `rsm server confirm-restore`, or with --cancel-pending',
    ),
  ]
}

function checkClockJump({ status }: ServerFacts): CheckResult {
  // Absent from older servers.
  if (!status?.clock) return null
  const todo = 'correct the clock; if it is right, on the machine of the server: `rsm server confirm-clock`'
  return [finding('clock-jumped', 'warning', doubtSentence(status.clock), todo)]
}

function checkVersion({ info, version }: ServerFacts): CheckResult {
  const found = info && compareVersions(version, info.version)
  if (!info || !found) return null
  if (!found.isOlder && !found.isNewer) return `is ${info.version}, like this rsm`
  const mismatch = found.isCompatible ? '' : ': they may not understand each other'
  return [
    finding(
      'version',
      found.isCompatible ? 'note' : 'warning',
      `it is ${info.version}, this rsm ${version}${mismatch}`,
      found.isOlder ? 'upgrade rsm here' : 'upgrade the server',
    ),
  ]
}

function checkClock({ clockOffsetSeconds: offset }: ServerFacts): CheckResult {
  if (offset === null) return null
  if (Math.abs(offset) < clockTolerance) return 'its clock agrees with the one here'
  return [
    finding(
      'clock',
      'warning',
      `the clock here is ${clockWords(offset)}${offset > 0 ? ' of' : ''} the server's: one of them is wrong`,
      'check both with timedatectl',
    ),
  ]
}

function checkSecrecy({ url, certificateEnds, now }: ServerFacts): CheckResult {
  if (isInTheClear(url))
    return [
      finding(
        'plain-http',
        'warning',
        'tokens and output travel in the clear',
        'give the server --tls-cert and --tls-key',
      ),
    ]
  if (certificateEnds === null) return null
  const left = (certificateEnds - now) / 1000
  if (left >= soon * day) return `its certificate is good for ${span(left)}`
  return [
    finding(
      'certificate',
      left < verySoon * day ? 'error' : 'warning',
      left <= 0 ? 'its certificate has expired' : `its certificate expires in ${span(left)}`,
      'renew it, and send the server SIGHUP to make it read its files again',
    ),
  ]
}

export function examineServer(facts: ServerFacts): Examination {
  return gather([
    checkReadiness(facts),
    checkRestore(facts),
    checkClockJump(facts),
    checkVersion(facts),
    checkClock(facts),
    checkSecrecy(facts),
  ])
}
