import { reattachWindow } from '../../core/protocol/terminal-messages.ts'
import { ended, type SessionEnd } from './session-events.ts'

const seconds = reattachWindow / 1000

/** Why a session has to end by now, or null. Monotonic milliseconds, null for who is there; `idleLimit` 0 for none. */
export function overdueOf(
  since: { clientAway: number | null; agentAway: number | null; activity: number },
  now: number,
  idleLimit: number,
): SessionEnd | null {
  if (since.clientAway !== null && now - since.clientAway > reattachWindow)
    return ended(`its client did not come back within ${seconds} s`)
  if (since.agentAway !== null && now - since.agentAway > reattachWindow)
    return ended("the host's agent did not come back")
  if (idleLimit > 0 && now - since.activity > idleLimit)
    return ended(`nothing was typed or shown for ${idleLimit / 1000} s`)
  return null
}
