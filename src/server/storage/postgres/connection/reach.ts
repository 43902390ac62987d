import { RsmError } from '../../../../core/errors.ts'
import { type Log, told } from '../../../../disk/log.ts'
import { retryAfter } from './failure.ts'

/** Whether PostgreSQL answers. The log says when that ends and when it is so again, not what fails meanwhile. */
export interface Reach {
  /** Why the last call could not reach it; null when it could. */
  readonly fault: string | null
  /** The same in the words for callers. */
  readonly refusal: string | null
  reached(): void
  /** Answers what callers are told, which the log shows at DEBUG from now on. `isNews`: the error is of the connections in use now. */
  missed(error: RsmError, isNews: boolean): RsmError
  /** Hides the address of PostgreSQL once it was reached, because any caller, even with an invalid token, gets this. */
  shown(error: RsmError): RsmError
}

const away = 'the store cannot be reached just now'

export function createReach(log: Log): Reach {
  let fault: string | null = null
  // Who starts without PostgreSQL says so in other words, and ends.
  let wasReached = false
  const shown = (error: RsmError) =>
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
      return told(shown(error))
    },
    shown,
  }
}
