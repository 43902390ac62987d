import { constants } from 'node:os'
import type { ScriptComplete } from '../../../core/protocol/messages.ts'
import {
  type Counts,
  type FinalStatus,
  finalTaskStatus,
  type Survivor,
  type TaskResult,
} from '../../../core/tasks/task.ts'
import { printable } from '../../../core/text/printable.ts'
import { isoTime } from '../../../disk/clock.ts'
import type { Execution, OutputSoFar, ReportedEnd } from '../ports/executions.ts'
import type { TaskRemains } from '../ports/outputs.ts'
import type { TaskGates, TaskRecord } from '../records/task.ts'

/** Milliseconds that an agent's times may differ from what the server observed. */
const clockTolerance = 5000

const levels = ['cgroup', 'pid-namespace', 'process-group'] as const
const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

/** Execution as its agent's report ends it; `now` in milliseconds since the epoch. */
export function settled(
  { complete, incomplete, contradiction = null, timeoutHint }: ReportedEnd,
  output: OutputSoFar,
  current: Execution,
  now: number,
): Execution {
  const { status, doubt } = statusOf(complete, current.cancelRequested, contradiction)
  const { verify, rollback } = complete
  const isUnknown = status === 'LOST' || (verify && verify.exitCode === null && status !== 'SUCCESS')
  const lacks = missing(complete, { ...output, incomplete: incomplete || output.incomplete })
  // The report's error already counts the missing pieces.
  const sizes = incomplete ? null : lacks
  return {
    ...current,
    ...times(complete, current, now),
    status,
    exitCode: isUnknown ? null : complete.exitCode,
    signal: signalOf(complete),
    stdoutBytes: complete.stdoutBytes ?? output.stdoutBytes,
    stderrBytes: complete.stderrBytes ?? output.stderrBytes,
    truncated: complete.truncated === true || output.truncated,
    outputComplete: status !== 'LOST' && lacks === null,
    error: sentence([complete.error, status === 'CANCELLED' ? null : timeoutHint, doubt, sizes]),
    containment: levels.find((level) => level === complete.containment) ?? null,
    survivors: survivorsOf(complete),
    ...(complete.changed !== undefined && { changed: complete.changed }),
    ...(verify && { verify }),
    ...(rollback && { rollback }),
  }
}

/**
 * Result of an end: SUCCESS is exit 0, TIMEOUT −1, FAILED any other code (contract §4). The agent's own
 * status must match; if it does not, `doubt` says so, and the result is never SUCCESS.
 */
export function statusOf(
  { exitCode, status: said, verify }: ScriptComplete,
  isCancelRequested: boolean,
  contradiction: string | null = null,
): { status: FinalStatus; doubt: string | null } {
  if (said === 'LOST') return { status: said, doubt: null }
  // The first of COMPLETE and cancel on disk wins (contract §4). An rsm agent reports itself which was first.
  if (isCancelRequested && (said === undefined || said === 'CANCELLED'))
    return { status: 'CANCELLED', doubt: null }
  // The script succeeded; the exit code is that of its verification.
  if (said === 'FAILED' && verify && verify.status !== 'SUCCESS') return { status: said, doubt: null }
  const meant = exitCode === 0 ? 'SUCCESS' : exitCode === -1 ? 'TIMEOUT' : 'FAILED'
  if (said === undefined || said === meant)
    return meant === 'SUCCESS' && contradiction !== null
      ? { status: 'FAILED', doubt: contradiction }
      : { status: meant, doubt: null }
  const doubt = `its agent says ${said} with exit code ${exitCode}${said === 'CANCELLED' ? ', although it was not cancelled' : ''}`
  return { status: meant === 'SUCCESS' ? 'FAILED' : meant, doubt }
}

export function signalOf(complete: ScriptComplete): string | null {
  if (complete.signal !== undefined) return complete.signal
  return complete.exitCode > 128 ? (signalNames.get(complete.exitCode - 128) ?? null) : null
}

/** Start and end by the agent if they match what the server observed: agents' clocks are not trusted. */
function times(complete: ScriptComplete, current: Execution, now: number) {
  const sent = Date.parse(current.sentAt ?? isoTime(now))
  const plausible = (text: string) => {
    const time = Date.parse(text)
    return time >= sent - clockTolerance && time <= now + clockTolerance ? time : Number.NaN
  }
  const duration = Math.max(0, Number.isFinite(complete.duration) ? Math.round(complete.duration) : 0)
  const start = plausible(complete.startedAt)
  const end = plausible(complete.completedAt)
  const startedAt = Number.isNaN(start) ? Math.max(sent, now - duration) : start
  const completedAt = Number.isNaN(end) || end < startedAt ? Math.max(startedAt, now) : end
  return { startedAt: isoTime(startedAt), completedAt: isoTime(completedAt), duration }
}

/**
 * Describes how much less is stored than the script wrote; null if nothing is missing. U+FFFD only makes the
 * stored count larger, and truncated output is marked as such.
 */
function missing(complete: ScriptComplete, output: OutputSoFar): string | null {
  const isCut = complete.truncated === true || output.truncated
  const parts = (['stdout', 'stderr'] as const).flatMap((stream) => {
    const [stored, wrote] = [output[`${stream}Bytes`], complete[`${stream}Bytes`] ?? 0]
    return !isCut && stored < wrote ? [`${wrote - stored} of ${wrote} bytes of ${stream}`] : []
  })
  if (parts.length > 0) return `output is missing: ${parts.join(', ')}`
  if (!output.incomplete) return null
  // A base-protocol agent does not report how much there was.
  return `output is missing: amount unknown, ${output.stdoutBytes + output.stderrBytes} bytes are stored`
}

/** Survivors of the script; null (unknown) if the agent reports containment without them. */
function survivorsOf({ survivors, containment }: ScriptComplete): Survivor[] | null {
  if (survivors === undefined) return containment ? null : []
  return survivors.map(({ pid, command }) => ({ pid, command: printable(command) }))
}

function sentence(parts: readonly (string | null | undefined)[]): string | null {
  const said = parts.filter((part) => part)
  return said.length === 0 ? null : printable(said.join('; '))
}

export function withoutTheRest(complete: ScriptComplete, { storedSequence }: OutputSoFar): ScriptComplete {
  const { error, lastSequence = -1 } = complete
  const missing = `output is missing: its agent announced ${lastSequence + 1} pieces and sent ${storedSequence + 1}`
  return { ...complete, lastSequence: storedSequence, error: error ? `${error}; ${missing}` : missing }
}

/** Ends a task; null while an execution is open, or if it has ended. `now`: milliseconds since 1970. */
export function endedTask(task: TaskRecord, counts: Readonly<Counts>, now: number): TaskRecord | null {
  if (task.status !== 'RUNNING') return null
  const status = finalTaskStatus(counts, task.cancelRequestedAt !== null)
  if (status === null) return null
  const started = Date.parse(task.startedAt ?? task.createdAt)
  return {
    ...task,
    status,
    counts: { ...counts },
    content: null,
    ...(task.gates && { gates: withoutTexts(task.gates) }),
    secretParams: null,
    pauseUntil: null,
    completedAt: isoTime(Math.max(now, started)),
    duration: Math.max(0, now - started),
  }
}

const withoutTexts = ({ verify, rollback }: TaskGates): TaskGates => ({
  script: null,
  verify: verify && { ...verify, content: null },
  rollback: rollback && { ...rollback, content: null },
})

export type Texts = Omit<TaskRemains, 'results'>

/** Texts that a running task archives when it ends. */
export function textsOf({ content, gates }: TaskRecord): Texts {
  if (!gates) return { script: content ?? '' }
  const { script, verify, rollback } = gates
  const texts = { verify: verify?.content ?? null, rollback: rollback?.content ?? null }
  return { script: script ?? '', gates: texts }
}

/** Whether a report after the final state is new: only the first one, and only if no end is known. */
export function isNews({
  exitCode,
  verify,
  lateResult,
}: Pick<TaskResult, 'exitCode' | 'lateResult'> & { verify?: unknown }): boolean {
  return exitCode === null && !verify && lateResult === null
}
