import { RsmError } from '../../core/errors.ts'
import type { PasswordReset } from '../../core/protocol/control.ts'
import { type Passwords, shortestPassword } from '../access/passwords.ts'
import { endTokens } from '../services/users.ts'
import { systemActor } from '../storage/audit-entry.ts'
import type { AuditLog } from '../storage/ports/audit-log.ts'
import type { Store, Transaction } from '../storage/ports/store.ts'

interface Parts {
  readonly store: Pick<Store, 'transact'>
  readonly passwords: Pick<Passwords, 'hash'>
  readonly audit: Pick<AuditLog, 'append'>
  /** Current time as stored in records. */
  readonly at: string
}

/** Longest password in characters (contract §2). */
const longestPassword = 1024

async function userOf(tx: Pick<Transaction, 'find' | 'query'>, username: string) {
  const [user] = await tx.find('users', 'username', username.toLowerCase())
  if (user !== undefined) return user
  const names = (await tx.query('users', { where: { equals: { role: 'ADMIN' } }, limit: 5 })).items
  throw new RsmError('not_found', `no such user: ${username}`, {
    hint: `the administrators are: ${names.map((each) => each.username).join(', ')}`,
  })
}

/** Sets a password and revokes the user's tokens, whose ids it returns. Errors: `not_found`, `invalid`. */
export async function resetPassword(
  { store, passwords, audit, at }: Parts,
  { username, password }: { username: string; password: string },
): Promise<PasswordReset & { ended: number[] }> {
  // Before the password is checked: the command line sends an empty one to check that the user exists.
  await store.transact((tx) => userOf(tx, username))
  if (password.length < shortestPassword || password.length > longestPassword)
    throw new RsmError(
      'invalid',
      `the new password must have ${shortestPassword} to ${longestPassword} characters`,
    )
  const passwordHash = await passwords.hash(password)
  const reset = await store.transact(async (tx) => {
    const user = await userOf(tx, username)
    // A user who lost the password may have lost the authenticator app, too.
    const { totp: _, ...rest } = user
    tx.put('users', { ...rest, passwordHash, updatedAt: at })
    const tokens = await tx.find('tokens', 'userId', user.id)
    const sessions = tokens.filter(({ kind }) => kind === 'session').length
    const { id, role, enabled } = user
    const ended = await endTokens(tx, id)
    return { id, username: user.username, role, enabled, sessions, tokens: ended.length - sessions, ended }
  })
  const { id, sessions, tokens, ...rest } = reset
  await audit.append({
    actor: systemActor,
    ip: null,
    action: 'user.resetPassword',
    object: { type: 'user', id, name: rest.username },
    outcome: 'SUCCESS',
    detail: { sessions, tokens },
  })
  return { ...rest, sessions, tokens }
}
