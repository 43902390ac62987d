import { reattachWindow } from '../../core/protocol/terminal-messages.ts'
import { ended, type TerminalEnd } from './terminal-end.ts'

/** Monotonic milliseconds: since when client and agent are away, and when there was data last. */
interface Since {
  readonly client: number | null
  readonly agent: number | null
  readonly active: number
}

/** Why a terminal has to end at `now`, or null. `idleLimit` in milliseconds, 0 for none. */
export function overdue(
  { client, agent, active }: Since,
  now: number,
  idleLimit: number,
): TerminalEnd | null {
  if (client !== null && now - client > reattachWindow)
    return ended(`its client did not come back within ${reattachWindow / 1000} s`)
  if (agent !== null && now - agent > reattachWindow) return ended("the host's agent did not come back")
  if (idleLimit > 0 && now - active > idleLimit)
    return ended(`nothing was typed or shown for ${idleLimit / 1000} s`)
  return null
}
