import { type Clock, isoTime } from '../clock.ts'
import type { LinkClaim, Links } from '../seams/links.ts'
import type { MemoryOwnership } from './ownership.ts'

/** Milliseconds. */
const replacementWindow = 60_000
const refusalTime = 5 * 60_000
/** Replacements within the window that stand for two agents with one identity. */
const tooMany = 3

export interface MemoryLinks extends Links {
  /** Whether no newer claim holds the host; at once, for a transaction of the store. */
  isCurrentNow(claim: LinkClaim): boolean
}

/** Claims in memory: the links of a process end with it, and so do its epochs. */
export function createLinks(clock: Clock, ownership: MemoryOwnership): MemoryLinks {
  const held = new Map<number, { claim: LinkClaim; superseded: () => void; isReady: boolean }>()
  /** Monotonic milliseconds of the newest replacements. */
  const replaced = new Map<number, number[]>()
  const refusedUntil = new Map<number, number>()
  let epochs = 0

  const holderNow = (hostId: number) => {
    const claim = held.get(hostId)?.claim
    return claim && ownership.isLiving(claim.server) ? claim : null
  }
  const refuses = (hostId: number) =>
    clock.monotonic() < (refusedUntil.get(hostId) ?? 0) && holderNow(hostId) !== null
  const isCurrentNow = ({ hostId, epoch }: LinkClaim) => held.get(hostId)?.claim.epoch === epoch

  /** Answers whether it was one too many. */
  function countReplacement(hostId: number): boolean {
    const now = clock.monotonic()
    const times = [...(replaced.get(hostId) ?? []), now].filter((time) => now - time < replacementWindow)
    replaced.set(hostId, times)
    if (times.length < tooMany) return false
    replaced.delete(hostId)
    refusedUntil.set(hostId, now + refusalTime)
    return true
  }

  return {
    isCurrentNow,
    async claim(hostId, by, superseded) {
      if (refuses(hostId)) return null
      const former = held.get(hostId)
      // Agents of a server that died come to others all at once: that is no fight for a link.
      const isReplacement = holderNow(hostId) !== null
      const claim = { hostId, ...by, epoch: ++epochs, since: isoTime(clock.now()) }
      held.set(hostId, { claim, superseded, isReady: false })
      former?.superseded()
      return { claim, isDuplicate: isReplacement && countReplacement(hostId) }
    },
    async ready(claim) {
      const its = held.get(claim.hostId)
      if (its && isCurrentNow(claim)) its.isReady = true
    },
    async release(claim) {
      if (isCurrentNow(claim)) held.delete(claim.hostId)
    },
    holder: async (hostId) => holderNow(hostId),
    async holders(hostIds) {
      const claims = hostIds
        .filter((hostId) => held.get(hostId)?.isReady)
        .map(holderNow)
        .filter((claim) => claim !== null)
      return new Map(claims.map((claim) => [claim.hostId, claim]))
    },
    refuses,
    async expire() {
      const now = clock.monotonic()
      for (const [hostId, times] of replaced)
        if (times.every((time) => now - time >= replacementWindow)) replaced.delete(hostId)
      const over = [...refusedUntil].filter(([, until]) => now >= until).map(([hostId]) => hostId)
      for (const hostId of over) refusedUntil.delete(hostId)
      return over
    },
  }
}
