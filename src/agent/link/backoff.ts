import { Backoff } from '../../net/backoff.ts'

const longest = 300_000

/** From 5 s to 5 min, with jitter (contract §6). */
export const agentBackoff = (random: () => number): Backoff =>
  new Backoff({ first: 5_000, longest, jitter: 0.25, random })

/**
 * Milliseconds before the one quick retry after a link that stood has dropped: the server very likely just restarted. The
 * failures after it count from 5 s as ever.
 */
export const quickDelay = (random: () => number): number => Math.round(200 + 800 * random())

/** Milliseconds between attempts of an agent whose token was revoked: only a person can mend that. */
export const revokedDelay = longest
