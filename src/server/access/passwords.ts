import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import { Semaphore } from '../../core/mutex.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Store } from '../storage/ports/store.ts'

/** Cost parameters of scrypt (RFC 7914 §2). */
export interface PasswordCost {
  readonly N: number
  readonly r: number
  readonly p: number
}

export const usualCost: PasswordCost = { N: 16_384, r: 8, p: 1 }
const keyBytes = 32
/** scrypt shares libuv's threads: 4 at once raised an fsync from 0.2 to 279 ms (reliability "Facts that bite"). */
const atOnce = 2
const queueLimit = 64

/** Minimum length of a password (contract §2). */
export const shortestPassword = 8

export interface Passwords {
  /** `scrypt$N$r$p$salt$hash`. Rejects with `too_many` when the queue is full. */
  hash(password: string): Promise<string>
  /** Takes the same time for an unknown user (`stored` undefined) as for a wrong password (contract §2). */
  verify(password: string, stored: string | undefined): Promise<boolean>
  readonly queueLength: number
}

export function createPasswords(cost: PasswordCost = usualCost): Passwords {
  const semaphore = new Semaphore(atOnce)
  const dummy = format(randomBytes(16), randomBytes(keyBytes))

  function format(salt: Buffer, key: Buffer): string {
    return `scrypt$${cost.N}$${cost.r}$${cost.p}$${salt.toString('base64')}$${key.toString('base64')}`
  }

  async function bounded<T>(work: () => Promise<T>): Promise<T> {
    if (semaphore.queueLength >= queueLimit)
      throw new RsmError('too_many', 'Too many logins at once; try again in a moment', { retryAfter: 2 })
    return semaphore.run(work)
  }

  return {
    get queueLength() {
      return semaphore.queueLength
    },
    hash: (password) =>
      bounded(async () => {
        const salt = randomBytes(16)
        return format(salt, await derive(password, salt, cost))
      }),
    verify: (password, stored) =>
      bounded(async () => {
        const [, N, r, p, salt, hash] = (stored ?? dummy).split('$')
        const wanted = Buffer.from(hash ?? '', 'base64')
        const options = { N: Number(N), r: Number(r), p: Number(p) }
        const key = await derive(password, Buffer.from(salt ?? '', 'base64'), options)
        return timingSafeEqual(key, wanted) && stored !== undefined
      }),
  }
}

function derive(password: string, salt: Buffer, { N, r, p }: PasswordCost): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), salt, keyBytes, { N, r, p }, (error, key) => {
      if (error) reject(error)
      else resolve(key)
    })
  })
}

/**
 * Creates user `admin` in an empty store, with the given password or a random one, which the caller shows once; there
 * is no default password (contract §2). Null if there are users already.
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
    // Another server may have started in the meantime.
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
