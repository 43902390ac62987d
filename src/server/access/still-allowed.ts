import { RsmError } from '../../core/errors.ts'
import type { Action } from '../../core/permissions.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import { demand, demandLasting, standing } from '../storage/ports/standing.ts'
import type { Transaction } from '../storage/ports/store.ts'

/**
 * Throws unless the caller's token still stands for an enabled user who may do this: what ended it while the work
 * waited must not leave anything new behind. `lasting`: what may outlast the token.
 */
export async function stillAllowed(
  tx: Pick<Transaction, 'get'>,
  caller: UserCaller,
  action: Action,
  { lasting = false } = {},
): Promise<void> {
  const token = await tx.get('tokens', caller.tokenId)
  const owner = await tx.get('users', caller.id)
  if (!token || !owner?.enabled)
    throw new RsmError('unauthenticated', 'This token is unknown, has expired or was revoked')
  const now = standing(token, owner)
  demand(now, action)
  if (lasting) demandLasting(now)
}
