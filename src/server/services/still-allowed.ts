import { RsmError } from '../../core/errors.ts'
import { type Action, may } from '../../core/permissions.ts'
import type { UserCaller } from '../access/caller.ts'
import type { Transaction } from '../store/store.ts'

/**
 * Throws unless the caller's token still stands for an enabled user who may do this: what ended it while the work
 * waited must not leave anything new behind.
 */
export async function stillAllowed(
  tx: Pick<Transaction, 'get'>,
  caller: UserCaller,
  action: Action,
): Promise<void> {
  const token = await tx.get('tokens', caller.tokenId)
  const owner = await tx.get('users', caller.id)
  if (!token || !owner?.enabled)
    throw new RsmError('unauthenticated', 'This token is unknown, has expired or was revoked')
  if (!may(token.kind === 'session' ? owner.role : token.role, action))
    throw new RsmError('forbidden', 'Your role does not allow this; ask an administrator')
}
