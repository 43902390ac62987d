import type { Clock } from '../../disk/clock.ts'
import type { Membership } from '../storage/servers/membership.ts'
import type { WebSockets } from './web-sockets.ts'

/** Milliseconds. */
const lookEvery = 1_000
/** A process that stood still asks for its lease first. */
const graceAfterPause = 5_000
/** Milliseconds after the last renewed lease for which links are kept, and in which they are closed then (contract §12). */
const keptFor = 30_000
const closedWithin = 30_000

/** The share of the links that is closed now, where that is asked every `interval` milliseconds. */
export function shareToClose(sinceRenewed: number, interval: number): number {
  const left = keptFor + closedWithin - sinceRenewed
  if (left > closedWithin) return 0
  return left <= interval ? 1 : interval / left
}

interface Parts {
  membership: Pick<Membership, 'sinceRenewed'>
  webSockets: Pick<WebSockets, 'shed'>
  clock: Clock
}

/** Closes links once this server has not reached its store for so long that their agents are better off elsewhere. Answers the way to stop. */
export function shedLinks({ membership, webSockets, clock }: Parts): () => void {
  let lookedAt = clock.monotonic()
  let resumedAt = Number.NEGATIVE_INFINITY
  const looking = setInterval(() => {
    const now = clock.monotonic()
    if (now - lookedAt > 3 * lookEvery) resumedAt = now
    lookedAt = now
    const share = shareToClose(membership.sinceRenewed(), lookEvery)
    if (share > 0 && now - resumedAt >= graceAfterPause) webSockets.shed(share)
  }, lookEvery).unref()
  return () => clearInterval(looking)
}
