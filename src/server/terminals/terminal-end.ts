import { reattachWindow } from '../../core/terminals/terminal.ts'

/** How a terminal ended; `reason` is a sentence unless the shell ended on its own. */
export interface TerminalEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly reason: string | null
}

/** An end not caused by the shell. */
export const ended = (reason: string): TerminalEnd => ({ exitCode: null, signal: null, reason })

/** Whether something other than its program ended it: disconnected clients need not return. */
export const isCutShort = ({ exitCode, signal }: TerminalEnd): boolean => exitCode === null && signal === null

export const howEnded = ({ exitCode, signal, reason }: TerminalEnd): string =>
  reason ?? (signal === null ? `exit code ${exitCode}` : signal)

/** Reason for closing the sockets of its clients. */
export const saysOf = (end: TerminalEnd | null): string => end?.reason ?? 'the session ended'

/** Monotonic milliseconds since when client and agent are disconnected, and of the last data. */
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
