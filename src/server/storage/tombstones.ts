import { RsmError } from '../../core/errors.ts'
import type { OpenEnrollment } from '../../core/protocol/http/enrollments.ts'
import type { Caller } from './ports/caller.ts'
import type { Store, Transaction } from './ports/store.ts'
import type { EnrollmentRecord, HostRecord, TombstoneRecord } from './records/host.ts'

/** When an agent that is kept out asks again, seconds (contract §3). */
const askAgainAfter = 300

/** From now on no enrollment token that there is lets this host's agent in again; nothing for a host without one. */
export async function bury(
  tx: Transaction,
  { id: hostId, hostname, agent }: HostRecord,
  state: TombstoneRecord['state'],
  createdAt: string,
): Promise<void> {
  if (agent === null) return
  const enrollmentId = await tx.lastId('enrollments')
  tx.put('tombstones', { id: agent.agentId, state, hostId, hostname, enrollmentId, createdAt })
}

/** A token that was made for this host, and that nobody has used: `hosts join --replace` makes it before it revokes. */
function replaces({ hostId, state }: TombstoneRecord, enrollment: EnrollmentRecord): boolean {
  return state === 'revoked' && enrollment.hostId === hostId && enrollment.uses === 0
}

/** Lets an agent in although it was removed or revoked, or throws; where it throws later nothing has changed. */
export async function liftTombstone(
  tx: Transaction,
  agentId: string,
  caller: Caller,
  enrollment: EnrollmentRecord | null,
): Promise<void> {
  const tombstone = await tx.get('tombstones', agentId)
  if (!tombstone) return
  const isLifted =
    caller.type === 'user' ||
    (enrollment !== null && (enrollment.id > tombstone.enrollmentId || replaces(tombstone, enrollment)))
  if (!isLifted) throw keptOut(tombstone, (await tx.get('hosts', tombstone.hostId)) ?? null)
  tx.remove('tombstones', agentId)
}

/** An answer with Retry-After: who asks again then keeps no host's service from running. */
function keptOut({ id, state, hostname }: TombstoneRecord, host: HostRecord | null): RsmError {
  const toType = host === null ? 'rsm hosts join' : `rsm hosts join --replace ${host.hostname}`
  return new RsmError(
    'forbidden',
    `Agent ${id} (host ${hostname}) was ${state}, and this enrollment token was made before that; ` +
      `to let it in again make a new one: ${toType}`,
    { retryAfter: askAgainAfter },
  )
}

const isUsable = ({ uses, maxUses }: EnrollmentRecord) => uses < maxUses

/** The enrollment tokens that would let hosts in at this time, milliseconds since the epoch. */
export async function openEnrollments(store: Store, now: number): Promise<OpenEnrollment[]> {
  return (await store.query('enrollments')).items
    .filter((enrollment) => isUsable(enrollment) && now < Date.parse(enrollment.expiresAt))
    .map(({ id, name, uses, maxUses, expiresAt }) => ({ id, name, uses, maxUses, expiresAt }))
}

/**
 * Removes the tombstones that keep nobody out any more. A token that has expired counts until it is removed: a clock that
 * is wrong for a while must not let anyone in.
 */
export async function removeNeedlessTombstones(store: Store): Promise<void> {
  const { items: tombstones } = await store.query('tombstones')
  if (tombstones.length === 0) return
  const oldest = (await store.query('enrollments')).items.find(isUsable)
  const needless = tombstones.filter(({ enrollmentId }) => oldest === undefined || oldest.id > enrollmentId)
  if (needless.length === 0) return
  await store.transact(async (tx) => {
    // Its agent may have been removed once more meanwhile.
    const ids = needless.map(({ id }) => id)
    for (const [index, tombstone] of (await tx.getMany('tombstones', ids)).entries())
      if (tombstone && tombstone.enrollmentId === needless[index]?.enrollmentId)
        tx.remove('tombstones', tombstone.id)
  })
}
