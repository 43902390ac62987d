import type { AgentLink } from '../engine/agent-link.ts'
import type { TerminalClient } from './client.ts'
import type { TerminalSession } from './session.ts'

/** How a session ended; `reason` is a sentence where the shell did not end by itself. */
export interface SessionEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly reason: string | null
}

/** What a session tells its registry. */
export interface SessionEvents {
  /** Sends a signed TERMINAL_OPEN. */
  reopen(session: TerminalSession, link: AgentLink, after: number): void
  /** It has ended; called once. */
  ended(session: TerminalSession, end: SessionEnd): void
  /** It has ended, and its client has heard so or will never: nothing is left to do. */
  done(session: TerminalSession): void
  watched(session: TerminalSession, client: TerminalClient): void
  /** Its size has changed. */
  resized(session: TerminalSession): void
}

/** An end that is not the shell's own. */
export const ended = (reason: string): SessionEnd => ({ exitCode: null, signal: null, reason })

/** Not by its program: whoever is away then need not come back for it. */
export const isCutShort = ({ exitCode, signal }: SessionEnd): boolean => exitCode === null && signal === null

/** What the sockets of those who show it are closed with. */
export const saysOf = (end: SessionEnd | null): string => end?.reason ?? 'the session ended'
