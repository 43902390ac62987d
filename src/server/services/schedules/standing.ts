import { may, reaches } from '../../../core/permissions.ts'
import { stillAllowed } from '../../access/credentials.ts'
import { refusal, type UserCaller } from '../../storage/ports/caller.ts'
import type { Reads, Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord } from '../../storage/records/schedule.ts'

export function ownedBy(caller: UserCaller): Pick<ScheduleRecord, 'ownerId' | 'owner' | 'tokenId' | 'role'> {
  const { id: ownerId, username: owner, role } = caller
  return { ownerId, owner, role, tokenId: caller.tokenKind === 'personal' ? caller.tokenId : null }
}

/**
 * Why a schedule may no longer run, or null. It has the lesser of its owner's current rights and the role it was
 * written with (contract §14). Sessions expire anyway, so only the end of a personal token suspends its schedules.
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
  if (!may(role, 'execute')) return `it was written as ${role}, which may not run anything`
  if (tokenId === null) return null
  const token = await reads.get('tokens', tokenId)
  if (!token || token.userId !== ownerId) return `the token of ${username} that wrote it was revoked`
  if (Date.parse(token.expiresAt) <= now) return `the token of ${username} that wrote it has expired`
  return null
}

export const speaksFor = ({ id, role }: Pick<UserCaller, 'id' | 'role'>, ownerId: number): boolean =>
  id === ownerId || may(role, 'administer')

/** Only owner and ADMINs may write. @throws RsmError `forbidden`, or `unauthenticated` for an ended token. */
export async function demandWriter(
  tx: Pick<Transaction, 'get'>,
  caller: UserCaller,
  { ownerId, owner, name }: ScheduleRecord,
): Promise<void> {
  await stillAllowed(tx, caller, 'execute')
  if (speaksFor(caller, ownerId)) return
  throw refusal(caller, `schedule ${name} belongs to ${owner}: only ${owner} or an ADMIN may change it`)
}

/** Only the owner and ADMINs may use a schedule's secrets. @throws RsmError `forbidden`. */
export function demandSecretsOf(caller: UserCaller, { ownerId, owner, name }: ScheduleRecord): void {
  if (speaksFor(caller, ownerId)) return
  throw refusal(caller, `schedule ${name} uses ${owner}'s secrets: only ${owner} or an ADMIN may run it`)
}
