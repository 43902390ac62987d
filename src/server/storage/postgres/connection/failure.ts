import pg from 'pg'
import { RsmError } from '../../../../core/errors.ts'
import { type Log, markLogged } from '../../../../disk/log.ts'

/** Seconds after which a caller may retry. */
export const retryAfter = 2

const [lockTimeout, statementTimeout] = ['55P03', '57014']
/** SQLSTATE of a statement that lacks disk, memory or a file, such as a function's library; others may succeed. */
const lackCodes = new Set(['53100', '53200', '53400'])
const lackClass = '58'
/** Error message of `pg` if no connection of a pool becomes free in time. */
const poolTimeout = 'timeout exceeded when trying to connect'
/** SQLSTATE classes of faults of PostgreSQL, not of the statement. */
const awayClasses = new Set(['08', '53', '57'])
/** SQLSTATEs of a standby, and of a session that idled in a transaction for too long. */
const awayCodes = new Set(['25006', '25P03'])
/** SQLSTATEs of a serialization failure and a deadlock. */
const againCodes = new Set(['40001', '40P01'])

const codeOf = (error: unknown): string | null =>
  error instanceof pg.DatabaseError ? (error.code ?? null) : null

export function isToBeRepeated(error: unknown): boolean {
  return againCodes.has(codeOf(error) ?? '')
}

/**
 * Whether PostgreSQL is unreachable, a standby, or overloaded. Errors without an SQLSTATE are of the connection: a statement in
 * flight may or may not have been executed.
 */
export function isAway(error: unknown): boolean {
  if (error instanceof RsmError) return error.code === 'unavailable'
  const code = codeOf(error)
  if (code === null) return isOfConnection(error)
  return isOfStatement(error) || awayCodes.has(code) || awayClasses.has(code.slice(0, 2))
}

function isLate(error: unknown): boolean {
  const code = codeOf(error)
  if (code !== null) return code === lockTimeout || code === statementTimeout
  return error instanceof Error && error.message === poolTimeout
}

/** Whether only this statement fails for now, while PostgreSQL serves other calls. */
export function isOfStatement(error: unknown): boolean {
  const code = codeOf(error)
  return isLate(error) || (code !== null && (lackCodes.has(code) || code.startsWith(lackClass)))
}

/** Whether a statement timed out while it waited for a lock. */
export const missedLock = (error: unknown): boolean =>
  codeOf(error instanceof RsmError ? error.cause : error) === lockTimeout

/** Recognizes messages too, because `pg` has no class for these errors. */
function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('syscall' in error || 'code' in error) return true
  return /timeout|terminated|connection|not queryable|end on the pool/i.test(error.message)
}

/** Error for callers of a port: 503 with Retry-After. */
export function unavailable(error: unknown): RsmError {
  if (error instanceof RsmError) return error
  const reason =
    error instanceof Error ? error.message || (error as NodeJS.ErrnoException).code : String(error)
  const what = isLate(error)
    ? 'does not answer in time'
    : isOfStatement(error)
      ? 'cannot carry this out just now'
      : 'cannot be reached just now'
  return new RsmError('unavailable', `the store ${what}: ${reason}`, {
    retryAfter,
    cause: error,
  })
}

/** Whether PostgreSQL is reachable. Logs an outage once and its end once, not each failed call. */
interface Reach {
  /** Why the last call could not reach PostgreSQL; null if it did. */
  readonly fault: string | null
  /** The same for callers, without the address. */
  readonly refusal: string | null
  reached(): void
  /** Returns the error for callers, marked as logged. `isNews`: it is of the connections in use now. */
  missed(error: RsmError, isNews: boolean): RsmError
  /** Hides the address of PostgreSQL once it was reached, because any caller, even with an invalid token, gets this. */
  redact(error: RsmError): RsmError
}

const away = 'the store cannot be reached just now'

export function createReach(log: Log): Reach {
  let fault: string | null = null
  // Startup reports a failed first connection itself.
  let wasReached = false
  const redact = (error: RsmError) =>
    wasReached ? new RsmError('unavailable', away, { retryAfter, cause: error }) : error
  return {
    get fault() {
      return fault
    },
    get refusal() {
      return fault && away
    },
    reached() {
      if (fault !== null && wasReached) log.info({}, 'the store is reachable again')
      fault = null
      wasReached = true
    },
    missed(error, isNews) {
      if (isNews) {
        if (fault === null && wasReached) log.error({ err: error }, 'the store cannot be reached')
        fault = error.message
      }
      return markLogged(redact(error))
    },
    redact,
  }
}
