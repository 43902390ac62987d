import { join } from 'node:path'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Order, ScriptOrder } from '../../core/protocol/orders.ts'
import { endOf, gateOutputBytes, type Phase, type Step, type StepEnd } from '../../core/tasks/gates.ts'
import type { JournaledExecution, Passed } from './journaled.ts'

export const isGated = (order: Order): order is ScriptOrder =>
  order.kind === 'SCRIPT' && (order.verify !== undefined || order.rollback !== undefined)

/** The last step in the journal; the script's directory, cgroup and tag are those of the execution. */
export const stepOf = ({ started }: JournaledExecution): Step => ({
  phase: started?.phase ?? 'SCRIPT',
  attempt: started?.attempt ?? 1,
})

const nameOf = ({ phase, attempt }: Step) => `${phase.toLowerCase()}-${attempt}`

/** Directory of a step's script and output, within that of its execution. */
export const placeOf = (directory: string, step: Step): string =>
  step.phase === 'SCRIPT' ? directory : join(directory, nameOf(step))

/** Identifies a step's processes and cgroups, so that ending a verify script spares the script's. */
export const identityOf = (taskId: string, step: Step): string =>
  step.phase === 'SCRIPT' ? taskId : `${taskId}.${nameOf(step)}`

/** Variables of gate scripts beside the params: phase, and exit code of the previous step if known. */
function variablesOf(phase: Phase, ends: readonly StepEnd[]): Record<string, string> {
  const exitCode = ends.at(-1)?.exitCode ?? null
  return { RSM_PHASE: phase, ...(exitCode !== null && { RSM_EXIT_CODE: String(exitCode) }) }
}

export function orderOfStep(order: Order, { phase }: Step, passed: readonly Passed[]): Order {
  if (!isGated(order)) return order
  const { verify, rollback, ...script } = order
  const params = { ...script.params, ...variablesOf(phase, passed) }
  const gate = phase === 'VERIFY' ? verify : phase === 'ROLLBACK' ? rollback : undefined
  if (!gate) return { ...script, params }
  const used = passed.reduce((sum, { stdoutBytes, stderrBytes }) => sum + stdoutBytes + stderrBytes, 0)
  const least = Math.min(gateOutputBytes, script.maxOutputBytes)
  const maxOutputBytes = Math.max(script.maxOutputBytes - used, least)
  const { script: text, scriptType, timeout } = gate
  // Only the script receives stdin.
  const { stdin: _stdin, scriptName: _name, ...rest } = script
  return { ...rest, script: text, scriptType, timeout, params, maxOutputBytes }
}

export function passedOf(step: Step, complete: ScriptComplete, chunks: number): Passed {
  const { status = 'FAILED', exitCode, signal = null, error = null } = complete
  const { startedAt, completedAt, stdoutBytes = 0, stderrBytes = 0, truncated = false } = complete
  const { containment = null, survivors } = complete
  return {
    phase: step.phase,
    attempt: step.attempt,
    status,
    exitCode: status === 'LOST' ? null : exitCode,
    signal,
    error,
    startedAt,
    completedAt,
    stdoutBytes,
    stderrBytes,
    truncated,
    containment,
    ...(survivors && { survivors }),
    chunks,
  }
}

const maxSurvivors = 20

/** Null if unknown for one of the steps. */
function survivorsOf(passed: readonly Passed[]): ScriptComplete['survivors'] | null {
  if (passed.some(({ survivors }) => survivors === undefined)) return null
  return passed.flatMap(({ survivors = [] }) => survivors).slice(0, maxSurvivors)
}

export function completeOf(
  taskId: string,
  gates: ScriptOrder,
  passed: readonly [Passed, ...Passed[]],
): ScriptComplete {
  const [first] = passed
  const last = passed.at(-1) ?? first
  const sum = (what: 'stdoutBytes' | 'stderrBytes' | 'chunks') =>
    passed.reduce((total, step) => total + step[what], 0)
  const { status, exitCode, signal, error, verify, rollback } = endOf(gates, passed)
  const survivors = survivorsOf(passed)
  return {
    taskId,
    status,
    exitCode: exitCode ?? (status === 'CANCELLED' ? 143 : 255),
    signal,
    error,
    startedAt: first.startedAt,
    completedAt: last.completedAt,
    duration: Math.max(0, Date.parse(last.completedAt) - Date.parse(first.startedAt)),
    lastSequence: sum('chunks') - 1,
    stdoutBytes: sum('stdoutBytes'),
    stderrBytes: sum('stderrBytes'),
    truncated: passed.some(({ truncated }) => truncated),
    containment: passed.findLast(({ containment }) => containment !== null)?.containment ?? null,
    ...(survivors && { survivors }),
    ...(verify && { verify }),
    ...(rollback && { rollback }),
  }
}
