import type { RsmError } from '../../../core/errors.ts'
import { type Log, told } from '../../log.ts'

/** Whether PostgreSQL answers. The log says when that ends and when it is so again, not what fails meanwhile. */
export interface Reach {
  /** Why the last call could not reach it; null when it could. */
  readonly fault: string | null
  reached(): void
  /** Answers the error, which the log shows at DEBUG from now on. */
  missed(error: RsmError): RsmError
}

export function createReach(log: Log): Reach {
  let fault: string | null = null
  // Who starts without PostgreSQL says so in other words, and ends.
  let wasReached = false
  return {
    get fault() {
      return fault
    },
    reached() {
      if (fault !== null && wasReached) log.info({}, 'the store is reached again')
      fault = null
      wasReached = true
    },
    missed(error) {
      if (fault === null && wasReached) log.error({ err: error }, 'the store can not be reached')
      fault = error.message
      return told(error)
    },
  }
}
