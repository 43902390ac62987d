/** Phases of an execution on its host: its script, its verification, its rollback (contract §15). */
export const phases = ['SCRIPT', 'VERIFY', 'ROLLBACK'] as const
export type Phase = (typeof phases)[number]
export const isLaterPhase = (phase: Phase, than: Phase = 'SCRIPT'): boolean =>
  phases.indexOf(phase) > phases.indexOf(than)
/** Phases that an execution has only if its task requests them. */
export type GatePhase = Exclude<Phase, 'SCRIPT'>

export const gateStatuses = ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED'] as const
export type GateStatus = (typeof gateStatuses)[number]

/** End of the last attempt, and the number of attempts; `exitCode` is null if unknown. */
export interface VerifyResult {
  status: GateStatus
  exitCode: number | null
  attempts: number
}

export type RollbackResult = Omit<VerifyResult, 'attempts'>

/** Retries and timeouts of gates; times in seconds, timeout 0 = no limit. */
export interface GateTimes {
  readonly verify?:
    | { readonly retries: number; readonly intervalSeconds: number; readonly timeout: number }
    | null
    | undefined
  readonly rollback?: { readonly timeout: number } | null | undefined
}

export const mostRetries = 1000
export const longestInterval = 3600
export const defaultInterval = 5
/** Bytes of output that each start of a gate may produce, even if the script has used up `maxOutputBytes`. */
export const gateOutputBytes = 4096

/** One start of a script of an execution; attempts count from 1. */
export interface Step {
  readonly phase: Phase
  readonly attempt: number
}

export const firstStep: Step = { phase: 'SCRIPT', attempt: 1 }

/** End of a step; `exitCode` is null if unknown, `error` adds what the exit code does not show. */
export interface StepEnd extends Step {
  readonly status: GateStatus | 'LOST'
  readonly exitCode: number | null
  readonly signal: string | null
  readonly error: string | null
}

/** Next step after those that ended, and the seconds to wait before it; null: none. */
export function nextStep(
  { verify, rollback }: GateTimes,
  ends: readonly StepEnd[],
  isCancelled: boolean,
): (Step & { readonly wait: number }) | null {
  const last = ends.at(-1)
  if (!last) return { ...firstStep, wait: 0 }
  if (isCancelled || last.status === 'CANCELLED' || last.phase === 'ROLLBACK') return null
  if (last.phase === 'SCRIPT') {
    if (last.status === 'LOST') return null
    if (last.status === 'SUCCESS') return verify ? { phase: 'VERIFY', attempt: 1, wait: 0 } : null
  } else if (last.status === 'SUCCESS') return null
  else if (verify && last.attempt <= verify.retries)
    return { phase: 'VERIFY', attempt: last.attempt + 1, wait: verify.intervalSeconds }
  return rollback ? { phase: 'ROLLBACK', attempt: 1, wait: 0 } : null
}

/** End of an execution, combined from those of its steps. */
export interface GatedEnd extends Pick<StepEnd, 'status' | 'exitCode' | 'signal' | 'error'> {
  readonly verify: VerifyResult | null
  readonly rollback: RollbackResult | null
}

function reasonOf({ status, exitCode, signal, error }: StepEnd): string {
  if (status === 'TIMEOUT') return error === null ? 'timed out' : `timed out; ${error}`
  // The exit code or signal comes first; `error` then mentions processes left running.
  if (status !== 'FAILED' || exitCode === null) return error ?? status
  const end = signal === null ? `exit code ${exitCode}` : `killed by ${signal}`
  return error === null ? end : `${end}; ${error}`
}

/** A step whose end is unknown counts as failed (contract §15). */
const gateStatus = ({ status }: StepEnd): GateStatus => (status === 'LOST' ? 'FAILED' : status)

/** The script's own end, adjusted by its verification. */
function verified(
  gates: GateTimes,
  script: StepEnd,
  attempts: readonly StepEnd[],
): Omit<GatedEnd, 'rollback'> {
  const { status, exitCode, signal, error } = script
  if (status !== 'SUCCESS' || !gates.verify) return { status, exitCode, signal, error, verify: null }
  const last = attempts.at(-1)
  if (last?.status === 'SUCCESS')
    return { status, exitCode, signal, error, verify: { status, exitCode: 0, attempts: attempts.length } }
  const isOver = last !== undefined && last.status !== 'CANCELLED' && last.attempt > gates.verify.retries
  if (!isOver) {
    const cut = { status: 'CANCELLED', exitCode: last?.exitCode ?? null } as const
    const told = { signal: last?.signal ?? null, error: last?.error ?? null }
    return { ...cut, ...told, verify: { ...cut, attempts: attempts.length } }
  }
  const many = attempts.length > 1 ? ` (the last of ${attempts.length} attempts)` : ''
  return {
    status: 'FAILED',
    exitCode: last.exitCode,
    signal: last.signal,
    error: `verification failed: ${reasonOf(last)}${many}`,
    verify: { status: gateStatus(last), exitCode: last.exitCode, attempts: attempts.length },
  }
}

/** Combines the ends of an execution's steps: at least one, and none may follow. */
export function endOf(gates: GateTimes, ends: readonly [StepEnd, ...StepEnd[]]): GatedEnd {
  const [script, ...rest] = ends
  const attempts = rest.filter(({ phase }) => phase === 'VERIFY')
  const end = verified(gates, script, attempts)
  const rolledBack = rest.find(({ phase }) => phase === 'ROLLBACK')
  if (!rolledBack) return { ...end, rollback: null }
  const rollback = { status: gateStatus(rolledBack), exitCode: rolledBack.exitCode }
  if (rollback.status === 'SUCCESS') return { ...end, rollback }
  const failed = `rollback failed: ${reasonOf(rolledBack)}`
  return { ...end, rollback, error: end.error === null ? failed : `${end.error}; ${failed}` }
}

/** Most seconds that an execution can take with its gates; 0: unlimited. */
export function longestRun(timeout: number, { verify, rollback }: GateTimes = {}): number {
  const times = [timeout]
  if (verify) for (let start = 0; start <= verify.retries; start++) times.push(verify.timeout)
  if (rollback) times.push(rollback.timeout)
  if (times.includes(0)) return 0
  return times.reduce((sum, time) => sum + time, (verify?.retries ?? 0) * (verify?.intervalSeconds ?? 0))
}

export const phasesOf = ({ verify, rollback }: GateTimes = {}): readonly Phase[] => [
  'SCRIPT',
  ...(verify ? (['VERIFY'] as const) : []),
  ...(rollback ? (['ROLLBACK'] as const) : []),
]

/** Most bytes of output of an execution over all its starts, if `maxOutputBytes` is that of its script. */
export function outputBound(maxOutputBytes: number, { verify, rollback }: GateTimes = {}): number {
  const starts = (verify ? verify.retries + 1 : 0) + (rollback ? 1 : 0)
  return maxOutputBytes + starts * Math.min(gateOutputBytes, maxOutputBytes)
}
