/** What one execution goes through on its host: its script, then what checks it, then what undoes it (contract §15). */
export const phases = ['SCRIPT', 'VERIFY', 'ROLLBACK'] as const
export type Phase = (typeof phases)[number]
export const isLaterPhase = (phase: Phase, than: Phase = 'SCRIPT'): boolean =>
  phases.indexOf(phase) > phases.indexOf(than)
/** Phases that an execution has only where its task asks for them. */
export type GatePhase = Exclude<Phase, 'SCRIPT'>

export const gateStatuses = ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED'] as const
export type GateStatus = (typeof gateStatuses)[number]

/** How the last attempt ended, and how many there were; `exitCode` is null where it is not known. */
export interface VerifyResult {
  status: GateStatus
  exitCode: number | null
  attempts: number
}

export type RollbackResult = Omit<VerifyResult, 'attempts'>

/** How often and for how long the scripts of gates run; times in seconds, a timeout of 0 is none. */
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
/** Bytes of output that each start of a gate may leave, however much the script has left of `maxOutputBytes`. */
export const gateOutputBytes = 4096

/** One start of a script of an execution; attempts count from 1. */
export interface Step {
  readonly phase: Phase
  readonly attempt: number
}

export const firstStep: Step = { phase: 'SCRIPT', attempt: 1 }

/** How a step ended; `exitCode` is null where it is not known, `error` says what the exit code does not. */
export interface StepEnd extends Step {
  readonly status: GateStatus | 'LOST'
  readonly exitCode: number | null
  readonly signal: string | null
  readonly error: string | null
}

/** What follows on the steps that have ended, and after how many seconds; null: nothing does. */
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

/** What the steps of an execution amount to. */
export interface GatedEnd extends Pick<StepEnd, 'status' | 'exitCode' | 'signal' | 'error'> {
  readonly verify: VerifyResult | null
  readonly rollback: RollbackResult | null
}

function reasonOf({ status, exitCode, signal, error }: StepEnd): string {
  if (status === 'TIMEOUT') return error === null ? 'timed out' : `timed out; ${error}`
  // How a step that failed by itself ended comes first, as what it left running is told beside.
  if (status !== 'FAILED' || exitCode === null) return error ?? status
  const end = signal === null ? `exit code ${exitCode}` : `killed by ${signal}`
  return error === null ? end : `${end}; ${error}`
}

/** A step whose end is not known counts as failed (contract §15). */
const gateStatus = ({ status }: StepEnd): GateStatus => (status === 'LOST' ? 'FAILED' : status)

/** What is left of the script's own end once it has been verified. */
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

/** The end of an execution by those of its steps, of which there is one at least and after which none follows. */
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

/** Seconds that an execution may take with all that follows on its script; 0: there is no end to it. */
export function longestRun(timeout: number, { verify, rollback }: GateTimes = {}): number {
  const times = [timeout]
  if (verify) for (let start = 0; start <= verify.retries; start++) times.push(verify.timeout)
  if (rollback) times.push(rollback.timeout)
  if (times.includes(0)) return 0
  return times.reduce((sum, time) => sum + time, (verify?.retries ?? 0) * (verify?.intervalSeconds ?? 0))
}

/** The phases that an execution may go through. */
export const phasesOf = ({ verify, rollback }: GateTimes = {}): readonly Phase[] => [
  'SCRIPT',
  ...(verify ? (['VERIFY'] as const) : []),
  ...(rollback ? (['ROLLBACK'] as const) : []),
]

/** Bytes of output that an execution may leave with all of its starts, where `maxOutputBytes` is that of its script. */
export function outputBound(maxOutputBytes: number, { verify, rollback }: GateTimes = {}): number {
  const starts = (verify ? verify.retries + 1 : 0) + (rollback ? 1 : 0)
  return maxOutputBytes + starts * Math.min(gateOutputBytes, maxOutputBytes)
}
