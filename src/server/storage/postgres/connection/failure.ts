import pg from 'pg'
import { RsmError } from '../../../../core/errors.ts'
import { type Log, markLogged } from '../../../../disk/log.ts'

/** Seconds after which a caller may try again. */
export const retryAfter = 2

/** SQLSTATE of a statement that waited too long for a lock, and of one that took too long. */
const [lockTimeout, statementTimeout] = ['55P03', '57014']
/** SQLSTATE of a statement that lacks disk, memory or a file, such as a function's library; others may succeed. */
const lackCodes = new Set(['53100', '53200', '53400'])
const lackClass = '58'
/** What `pg` says where all connections of a pool are in use for too long. */
const poolTimeout = 'timeout exceeded when trying to connect'
/** Classes of SQLSTATE with which the server, not the statement, is at fault. */
const awayClasses = new Set(['08', '53', '57'])
/** SQLSTATE of a standby, and of a session that PostgreSQL ended within its transaction. */
const awayCodes = new Set(['25006', '25P03'])
/** Another transaction came first: the same work may be done again. */
const againCodes = new Set(['40001', '40P01'])

const codeOf = (error: unknown): string | null =>
  error instanceof pg.DatabaseError ? (error.code ?? null) : null

/** Whether the same transaction may be tried again at once. */
export function isToBeRepeated(error: unknown): boolean {
  return againCodes.has(codeOf(error) ?? '')
}

/**
 * Whether PostgreSQL could not be asked, as it is away, a standby, or overloaded. All that comes without an SQLSTATE
 * is of the connection: whether a statement that was under way was carried out is not known.
 */
export function isAway(error: unknown): boolean {
  if (error instanceof RsmError) return error.code === 'unavailable'
  const code = codeOf(error)
  if (code === null) return isOfConnection(error)
  return isOfStatement(error) || awayCodes.has(code) || awayClasses.has(code.slice(0, 2))
}

/** Whether one statement took or waited too long. */
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

/** Whether a statement did not get a lock within the time that it had for that. */
export const missedLock = (error: unknown): boolean =>
  codeOf(error instanceof RsmError ? error.cause : error) === lockTimeout

/** `pg` has no class of its own for these. */
function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('syscall' in error || 'code' in error) return true
  return /timeout|terminated|connection|not queryable|end on the pool/i.test(error.message)
}

/** What a caller of a port hears: 503 with Retry-After. */
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

/** Whether PostgreSQL answers. The log says when that ends and when it is so again, not what fails meanwhile. */
interface Reach {
  /** Why the last call could not reach it; null when it could. */
  readonly fault: string | null
  /** The same in the words for callers. */
  readonly refusal: string | null
  reached(): void
  /** Answers what callers are told, which the log shows at DEBUG from now on. `isNews`: the error is of the connections in use now. */
  missed(error: RsmError, isNews: boolean): RsmError
  /** Hides the address of PostgreSQL once it was reached, because any caller, even with an invalid token, gets this. */
  redact(error: RsmError): RsmError
}

const away = 'the store cannot be reached just now'

export function createReach(log: Log): Reach {
  let fault: string | null = null
  // Who starts without PostgreSQL says so in other words, and ends.
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
      if (fault !== null && wasReached) log.info({}, 'the store is reached again')
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
