import { RsmError } from '../../core/errors.ts'
import type { OpenEnrollment } from '../../core/protocol/http/agent.ts'
import type { Caller } from './ports/caller.ts'
import type { Store, Transaction } from './ports/store.ts'
import type { EnrollmentRecord, HostRecord, TombstoneRecord } from './records/host.ts'

/** Seconds until a refused agent asks again (contract §3). */
const askAgainAfter = 300

/** Blocks this host's agent for every existing enrollment token; no effect without an agent. */
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

/**
 * Whether a token was made for this host and is unused: `hosts join --replace` creates it before it revokes.
 */
function replaces({ hostId, state }: TombstoneRecord, enrollment: EnrollmentRecord): boolean {
  return state === 'revoked' && enrollment.hostId === hostId && enrollment.uses === 0
}

/** Admits a removed or revoked agent, or throws. If `tx` fails later, nothing has changed. */
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

/** Refuses with Retry-After, so that an agent that asks again does not block the service of its host. */
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

/** Enrollment tokens that would admit hosts at this time, in milliseconds since the epoch. */
export async function openEnrollments(store: Store, now: number): Promise<OpenEnrollment[]> {
  return (await store.query('enrollments')).items
    .filter((enrollment) => isUsable(enrollment) && now < Date.parse(enrollment.expiresAt))
    .map(({ id, name, uses, maxUses, expiresAt }) => ({ id, name, uses, maxUses, expiresAt }))
}

/**
 * Removes tombstones that no longer block a token. A token that has expired counts until it is removed,
 * because a clock that is wrong for a while must not admit an agent.
 */
export async function removeNeedlessTombstones(store: Store): Promise<void> {
  const { items: tombstones } = await store.query('tombstones')
  if (tombstones.length === 0) return
  const oldest = (await store.query('enrollments')).items.find(isUsable)
  const needless = tombstones.filter(({ enrollmentId }) => oldest === undefined || oldest.id > enrollmentId)
  if (needless.length === 0) return
  await store.transact(async (tx) => {
    // Its agent may have been removed again meanwhile.
    const ids = needless.map(({ id }) => id)
    for (const [index, tombstone] of (await tx.getMany('tombstones', ids)).entries())
      if (tombstone && tombstone.enrollmentId === needless[index]?.enrollmentId)
        tx.remove('tombstones', tombstone.id)
  })
}
