import { randomBytes } from 'node:crypto'
import type { UserCaller } from '../access/caller.ts'
import { type Clock, isoTime } from '../clock.ts'
import { sha256 } from '../digest.ts'

/** A ticket lets its bearer in once, within so many milliseconds (contract §7). */
const life = 30_000
/** Tickets that nobody uses must not fill the memory; the oldest go first. */
const mostKept = 10_000
const prefix = 'rsm_tkt_'

/** What a ticket stands for: this user, at this session. */
export interface Admission {
  readonly sessionId: string
  readonly caller: UserCaller
  readonly watch: boolean
}

export interface Tickets {
  issue(admission: Admission): { ticket: string; expiresAt: string }
  /** What it stands for, this once; undefined for one that is unknown, was used, or is too old. */
  redeem(ticket: string): Admission | undefined
}

/** Held in memory, as hashes: none of them outlives a restart, or need to. */
export function createTickets(clock: Clock): Tickets {
  const kept = new Map<string, { admission: Admission; until: number }>()
  return {
    issue(admission) {
      const ticket = prefix + randomBytes(32).toString('base64url')
      for (const [hash, { until }] of kept)
        if (until < clock.monotonic() || kept.size >= mostKept) kept.delete(hash)
        else break
      kept.set(sha256(ticket), { admission, until: clock.monotonic() + life })
      return { ticket, expiresAt: isoTime(clock.now() + life) }
    },
    redeem(ticket) {
      const hash = sha256(ticket)
      const found = kept.get(hash)
      kept.delete(hash)
      return found && clock.monotonic() < found.until ? found.admission : undefined
    },
  }
}
