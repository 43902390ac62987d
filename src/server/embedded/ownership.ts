import type { Clock } from '../clock.ts'
import { lease, type Member, type Ownership } from '../seams/ownership.ts'

export interface MemoryOwnership extends Ownership {
  isLiving(member: Member): boolean
  /** `holds` at once, for a transaction of the store. */
  holdsNow(member: Member, taskId: string): boolean
}

/** Owners in memory: a process that starts anew finds no members, so that all running tasks are free. */
export function createOwnership(clock: Clock): MemoryOwnership {
  const members = new Map<string, { member: Member; renewedAt: number }>()
  const owners = new Map<string, Member>()
  let epochs = 0
  /** Of all members; a lease counts up to here, so that a process that stood still lets nobody lapse. */
  let newestRenewal = 0

  /** Its present life; undefined when the member is fenced or has left. */
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
