import { type Clock, isoTime } from '../../../disk/clock.ts'
import {
  type Cluster,
  type LinkClaim,
  type Links,
  lease,
  type Member,
  type Ownership,
} from '../ports/cluster.ts'

/** Milliseconds. */
const replacementWindow = 60_000
const refusalTime = 5 * 60_000
/** Replacements within the window that indicate two agents with one identity. */
const tooMany = 3

interface MemoryOwnership extends Ownership {
  isLiving(member: Member): boolean
  /** Synchronous `holds`, for a transaction of the store. */
  holdsNow(member: Member, taskId: string): boolean
}

interface MemoryLinks extends Links {
  /** Whether no newer claim holds the host; synchronous, for a transaction of the store. */
  isCurrentNow(claim: LinkClaim): boolean
}

export interface MemoryCluster extends Cluster {
  ownership: MemoryOwnership
  links: MemoryLinks
}

/** Cluster in memory: its servers are those of this process. */
export function createCluster(clock: Clock): MemoryCluster {
  const ownership = createOwnership(clock)
  return {
    shared: null,
    ownership,
    links: createLinks(clock, ownership),
    tryExclusive,
    exclusive: (work) => work(),
  }
}

/** Runs `work` at once, because the lock of the data directory excludes other processes. */
export async function tryExclusive(work: () => Promise<void>): Promise<boolean> {
  await work()
  return true
}

/** Owners in memory: a new process finds no members, so that all running tasks are free. */
function createOwnership(clock: Clock): MemoryOwnership {
  const members = new Map<string, { member: Member; renewedAt: number }>()
  const owners = new Map<string, Member>()
  let epochs = 0
  /**
   * Newest renewal of all members; leases count up to here, so that none lapses because the process stalled.
   */
  let newestRenewal = 0

  /** Current incarnation; undefined if the member is fenced or has left. */
  const lifeOf = ({ name, epoch }: Member) => {
    const life = members.get(name)
    return life?.member.epoch === epoch ? life : undefined
  }
  const isLiving = (member: Member) => {
    const life = lifeOf(member)
    return life !== undefined && newestRenewal - life.renewedAt < lease
  }
  const holdsNow = (member: Member, taskId: string) =>
    owners.get(taskId)?.epoch === member.epoch && lifeOf(member) !== undefined
  const livingOwner = (taskId: string) => {
    const owner = owners.get(taskId)
    return owner && isLiving(owner) ? owner : null
  }

  return {
    isLiving,
    holdsNow,
    async join(name) {
      const member = { name, epoch: ++epochs }
      newestRenewal = clock.monotonic()
      members.set(name, { member, renewedAt: newestRenewal })
      return member
    },
    async renew(member) {
      const life = lifeOf(member)
      if (!life) return false
      newestRenewal = clock.monotonic()
      life.renewedAt = newestRenewal
      return true
    },
    renewedAt: (member) => lifeOf(member)?.renewedAt ?? null,
    async leave(member) {
      if (lifeOf(member)) members.delete(member.name)
    },
    async claim(member, taskIds) {
      if (!lifeOf(member)) return []
      for (const taskId of taskIds) if (!livingOwner(taskId)) owners.set(taskId, member)
      return taskIds.filter((taskId) => holdsNow(member, taskId))
    },
    async release(member, taskIds) {
      for (const taskId of taskIds) if (holdsNow(member, taskId)) owners.delete(taskId)
    },
    owner: async (taskId) => livingOwner(taskId),
    holds: async (member, taskId) => holdsNow(member, taskId),
  }
}

/** Claims in memory: links and epochs end with the process. */
function createLinks(clock: Clock, ownership: MemoryOwnership): MemoryLinks {
  const claimed = new Map<number, { claim: LinkClaim; superseded: () => void; isReady: boolean }>()
  /** Monotonic milliseconds of recent replacements. */
  const replaced = new Map<number, number[]>()
  const refusedUntil = new Map<number, number>()
  let epochs = 0

  const holderNow = (hostId: number) => {
    const claim = claimed.get(hostId)?.claim
    return claim && ownership.isLiving(claim.server) ? claim : null
  }
  const refuses = (hostId: number) =>
    clock.monotonic() < (refusedUntil.get(hostId) ?? 0) && holderNow(hostId) !== null
  const isCurrentNow = ({ hostId, epoch }: LinkClaim) => claimed.get(hostId)?.claim.epoch === epoch

  /** Returns whether it is one too many. */
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
      const previous = claimed.get(hostId)
      // Agents of a dead server reconnect all at once, which does not indicate a shared identity.
      const isReplacement = holderNow(hostId) !== null
      const claim = { hostId, ...by, epoch: ++epochs, since: isoTime(clock.now()) }
      claimed.set(hostId, { claim, superseded, isReady: false })
      previous?.superseded()
      return { claim, isDuplicate: isReplacement && countReplacement(hostId) }
    },
    async ready(claim) {
      const its = claimed.get(claim.hostId)
      if (its && isCurrentNow(claim)) its.isReady = true
    },
    async release(claim) {
      if (isCurrentNow(claim)) claimed.delete(claim.hostId)
    },
    holder: async (hostId) => holderNow(hostId),
    async holders(hostIds) {
      const claims = hostIds
        .filter((hostId) => claimed.get(hostId)?.isReady)
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
