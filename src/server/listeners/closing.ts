import type { Clock } from '../../disk/clock.ts'
import type { Membership } from '../storage/membership.ts'

/** Milliseconds between checks of the lease. */
const checkInterval = 1_000
/** Milliseconds for a process that was suspended to renew its lease. */
const graceAfterPause = 5_000
/**
 * Milliseconds from the last renewal until links are closed, and over which that is spread (contract §12).
 */
const keptFor = 30_000
const closedWithin = 30_000

interface SheddingParts {
  membership: Pick<Membership, 'sinceRenewed'>
  webSockets: { shed(share: number): void }
  clock: Clock
}

/**
 * Closes links gradually once the store is unreachable for too long, so that their agents connect elsewhere.
 * Returns a function that stops it.
 */
export function shedLinks({ membership, webSockets, clock }: SheddingParts): () => void {
  let checkedAt = clock.monotonic()
  let resumedAt = Number.NEGATIVE_INFINITY
  const checks = setInterval(() => {
    const now = clock.monotonic()
    if (now - checkedAt > 3 * checkInterval) resumedAt = now
    checkedAt = now
    const share = shareToClose(membership.sinceRenewed(), checkInterval)
    if (share > 0 && now - resumedAt >= graceAfterPause) webSockets.shed(share)
  }, checkInterval).unref()
  return () => clearInterval(checks)
}

/** Share of the links to close now, if called every `interval` milliseconds. */
export function shareToClose(sinceRenewed: number, interval: number): number {
  const left = keptFor + closedWithin - sinceRenewed
  if (left > closedWithin) return 0
  return left <= interval ? 1 : interval / left
}

/** A control frame holds 125 bytes, two of them the code (RFC 6455 §5.5); `ws` throws above that. */
const mostBytes = 123

/** Truncates a sentence to fit a close frame, between characters. */
export function closeReason(sentence: string): string {
  const bytes = Buffer.from(sentence)
  if (bytes.length <= mostBytes) return sentence
  let end = mostBytes
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
