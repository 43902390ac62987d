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
