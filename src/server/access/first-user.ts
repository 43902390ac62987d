import { randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import type { Clock } from '../clock.ts'
import { isoTime } from '../clock.ts'
import type { Store } from '../seams/store.ts'
import type { Passwords } from './passwords.ts'

/** Contract §2. */
const shortestPassword = 8

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
  const { total } = await store.query('users', { limit: 0 })
  if (total > 0) return null
  if (given !== undefined && given.length < shortestPassword)
    throw new RsmError('usage', `RSM_ADMIN_PASSWORD must have at least ${shortestPassword} characters`)
  const password = given ?? randomBytes(15).toString('base64url')
  const passwordHash = await passwords.hash(password)
  const at = isoTime(clock.now())
  await store.transact(async (tx) => {
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
  })
  return { username: 'admin', password, generated: given === undefined }
}
