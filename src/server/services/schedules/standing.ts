import { may, reaches } from '../../../core/permissions.ts'
import { stillAllowed } from '../../access/credentials.ts'
import { refusal, type UserCaller } from '../../storage/ports/caller.ts'
import type { Reads, Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord } from '../../storage/records/schedule.ts'

/** Whose rights a schedule has that this caller writes. */
export function ownedBy(caller: UserCaller): Pick<ScheduleRecord, 'ownerId' | 'owner' | 'tokenId' | 'role'> {
  const { id: ownerId, username: owner, role } = caller
  return { ownerId, owner, role, tokenId: caller.tokenKind === 'personal' ? caller.tokenId : null }
}

/**
 * Why a schedule may not run any more, or null: it has the lesser of the rights that its owner has now and of the role that
 * it was written with (contract §14). A session ends by itself, so only a personal token takes its schedules along.
 */
export async function whySuspended(
  reads: Pick<Reads, 'get'>,
  { ownerId, owner, tokenId, role }: Pick<ScheduleRecord, 'ownerId' | 'owner' | 'tokenId' | 'role'>,
  now: number,
): Promise<string | null> {
  const user = await reads.get('users', ownerId)
  if (!user) return `its owner ${owner} was deleted`
  const { username } = user
  if (!user.enabled) return `its owner ${username} is disabled`
  if (!reaches(user.role, role))
    return `its owner ${username} was demoted: it was written as ${role}, and ${username} is ${user.role} now`
  if (!may(role, 'execute')) return `it was written as ${role}, who runs nothing`
  if (tokenId === null) return null
  const token = await reads.get('tokens', tokenId)
  if (!token || token.userId !== ownerId) return `the token of ${username} that wrote it was revoked`
  if (Date.parse(token.expiresAt) <= now) return `the token of ${username} that wrote it has expired`
  return null
}

/** Whether a caller may decide in the place of an owner. */
export const speaksFor = ({ id, role }: Pick<UserCaller, 'id' | 'role'>, ownerId: number): boolean =>
  id === ownerId || may(role, 'administer')

/** Writes are for the owner and for ADMINs. @throws RsmError `forbidden`, or `unauthenticated` for a token that has ended. */
export async function demandWriter(
  tx: Pick<Transaction, 'get'>,
  caller: UserCaller,
  { ownerId, owner, name }: ScheduleRecord,
): Promise<void> {
  await stillAllowed(tx, caller, 'execute')
  if (speaksFor(caller, ownerId)) return
  throw refusal(caller, `schedule ${name} is ${owner}'s: its owner or an ADMIN changes it`)
}

/** Secrets of a schedule are used by its owner and by ADMINs. @throws RsmError `forbidden`. */
export function demandSecretsOf(caller: UserCaller, { ownerId, owner, name }: ScheduleRecord): void {
  if (speaksFor(caller, ownerId)) return
  throw refusal(caller, `schedule ${name} uses ${owner}'s secrets: only ${owner} or an ADMIN may run it`)
}
