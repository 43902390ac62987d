import { Allowance } from '../../core/allowance.ts'
import { RsmError } from '../../core/errors.ts'
import { revokedDelay } from '../link/backoff.ts'
import type { LogLevel } from '../log.ts'
import type { Parts } from '../parts.ts'

/** Registrations of an agent whose token is void: so many at once, and then one in 5 minutes. */
const enrollmentsAtOnce = 3

/** Begins heartbeats and metrics, and does what their answers ask for. `setLevel` takes the level of logs that the server gives. */
export function keepContact(parts: Parts, setLevel: (level: LogLevel) => void): void {
  const { heartbeat, status, runner, outbox, link, options } = parts
  const registerAnew = registrar(parts)
  heartbeat.start({
    reached(wasAway) {
      status.heard()
      runner.sweep()
      // The link comes after the first answer, as signatures are judged by the server's clock.
      if (!options.onDemand || !outbox.isIdle) link.open()
      if (wasAway) link.retryNow()
    },
    missed: (reason) => status.unheard(reason),
    configured(config) {
      setLevel(config.logLevel)
      if (config.pendingTasks.length > 0) link.open()
    },
    revoked: registerAnew,
  })
}

/** Registers an agent anew whose token is not valid any more, with its enrollment token; resolves to false where it can't. */
function registrar({ membership, status, options, clock, signal, log }: Parts): () => Promise<boolean> {
  const { agentId } = membership
  // Two that take the place of each other must not do so without a pause.
  const enrolling = new Allowance(enrollmentsAtOnce, revokedDelay)
  return async () => {
    log('ERROR', 'the token of this agent is not valid any more', {
      hint: 'enroll the host again: `rsm hosts join --replace HOST`, or `rsm hosts join` where it was removed, and give the agent that token',
    })
    if (options.enrollToken === undefined || enrolling.take(agentId, clock.monotonic()) > 0) return false
    try {
      await membership.registerAnew((reason) => {
        if (reason !== null) status.unheard(reason)
      })
      return true
    } catch (error) {
      if (signal.aborted) return false
      log('ERROR', 'not registered again', { error: String(error) })
      if (error instanceof RsmError) status.unheard(error.message)
      return false
    }
  }
}
