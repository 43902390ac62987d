/** How a session ended; `reason` is a sentence where the shell did not end by itself. */
export interface SessionEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly reason: string | null
}

/** An end that is not the shell's own. */
export const ended = (reason: string): SessionEnd => ({ exitCode: null, signal: null, reason })

/** Not by its program: whoever is away then need not come back for it. */
export const isCutShort = ({ exitCode, signal }: SessionEnd): boolean => exitCode === null && signal === null

/** What the sockets of those who show it are closed with. */
export const saysOf = (end: SessionEnd | null): string => end?.reason ?? 'the session ended'
