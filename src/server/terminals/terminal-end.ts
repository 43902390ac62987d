import { reattachWindow } from '../../core/protocol/terminal-messages.ts'

/** How a terminal ended; `reason` is a sentence where the shell did not end by itself. */
export interface TerminalEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly reason: string | null
}

/** An end that is not the shell's own. */
export const ended = (reason: string): TerminalEnd => ({ exitCode: null, signal: null, reason })

/** Not by its program: whoever is away then need not come back for it. */
export const isCutShort = ({ exitCode, signal }: TerminalEnd): boolean => exitCode === null && signal === null

/** How it ended, for whoever asks for more of it. */
export const howEnded = ({ exitCode, signal, reason }: TerminalEnd): string =>
  reason ?? (signal === null ? `exit code ${exitCode}` : signal)

/** What the sockets of those who show it are closed with. */
export const saysOf = (end: TerminalEnd | null): string => end?.reason ?? 'the session ended'

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
