import { randomBytes } from 'node:crypto'
import { type Clock, isoTime } from '../../disk/clock.ts'
import { sha256 } from '../../disk/digest.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { ShortLived } from '../storage/ports/short-lived.ts'

/** Milliseconds. A ticket is valid once (contract §7). */
const life = 30_000
const prefix = 'rsm_tkt_'

export interface Admission {
  readonly sessionId: string
  readonly caller: UserCaller
  readonly watch: boolean
}

export interface Tickets {
  issue(admission: Admission): Promise<{ ticket: string; expiresAt: string }>
  /** Consumes a ticket; undefined if it is unknown, used or expired. */
  redeem(ticket: string): Promise<Admission | undefined>
}

/** Stores hashes only. */
export function createTickets(shortLived: ShortLived, clock: Clock): Tickets {
  return {
    async issue(admission) {
      const ticket = prefix + randomBytes(32).toString('base64url')
      await shortLived.put('ticket', sha256(ticket), admission, life)
      return { ticket, expiresAt: isoTime(clock.now() + life) }
    },
    redeem: async (ticket) => (await shortLived.take('ticket', sha256(ticket))) as Admission | undefined,
  }
}
