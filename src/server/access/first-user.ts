import { randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import type { Clock } from '../../disk/clock.ts'
import { isoTime } from '../../disk/clock.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Passwords } from './passwords.ts'

/** Contract §2. */
export const shortestPassword = 8

/**
 * No default password exists: the first start of an empty store makes user `admin` with the given password, or a
 * random one, which the caller shows once (contract §2). Null when there are users already.
 */
export async function createFirstUser(
  store: Store,
  passwords: Passwords,
  clock: Clock,
  given: string | undefined,
): Promise<{ username: string; password: string; generated: boolean } | null> {
  const isUsed = async (reads: Pick<Store, 'query'>) => (await reads.query('users', { limit: 0 })).total > 0
  if (await isUsed(store)) return null
  if (given !== undefined && given.length < shortestPassword)
    throw new RsmError('usage', `RSM_ADMIN_PASSWORD must have at least ${shortestPassword} characters`)
  const password = given ?? randomBytes(15).toString('base64url')
  const passwordHash = await passwords.hash(password)
  const at = isoTime(clock.now())
  const made = await store.transact(async (tx) => {
    await tx.lock('admins')
    // Another server may have started meanwhile.
    if (await isUsed(tx)) return false
    tx.put('users', {
      id: await tx.nextId('users'),
      username: 'admin',
      role: 'ADMIN',
      email: null,
      enabled: true,
      passwordHash,
      lastLoginAt: null,
      createdAt: at,
      updatedAt: at,
    })
    return true
  })
  return made ? { username: 'admin', password, generated: given === undefined } : null
}
