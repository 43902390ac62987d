import { longestBackoff } from '../../core/protocol/bounds.ts'
import { Backoff } from '../../net/backoff.ts'

/** Milliseconds. Longest Retry-After that an agent honors. */
const longestAsked = 300_000
const usualFirst = 5_000
const jitter = 0.25

/** Milliseconds between attempts of an agent to reach its server (contract §6). */
export interface AgentBackoff {
  /** `retryAfter`: seconds that the server asks for, used instead of doubling the delay. */
  next(retryAfter?: number): number
  reset(): void
}

/** From `first` to `longestBackoff`. Jitter shortens a delay, but lengthens one that the server asks for. */
export function agentBackoff(random: () => number, first = usualFirst): AgentBackoff {
  const backoff = new Backoff({ first, longest: longestBackoff, jitter, random })
  return {
    next(retryAfter) {
      if (retryAfter === undefined) return backoff.next()
      const base = Math.max(first, retryAfter * 1000) * (1 + jitter * random())
      return Math.round(Math.min(longestAsked, base))
    },
    reset: () => backoff.reset(),
  }
}

/**
 * Milliseconds before the one quick retry after an open link dropped, because the server probably just
 * restarted. Later failures start at 5 s as usual.
 */
export const quickDelay = (random: () => number): number => Math.round(200 + 800 * random())

/** Milliseconds between attempts of an agent whose token was revoked: only a person can fix that. */
export const revokedDelay = longestAsked
