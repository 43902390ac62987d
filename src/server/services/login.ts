import { RsmError } from '../../core/errors.ts'
import type { LoginRequest, LoginResult, Me } from '../../core/protocol/http/users.ts'
import type { UserCaller } from '../access/caller.ts'
import { sourceOf } from '../access/source.ts'
import { newToken } from '../access/tokens.ts'
import { isoTime } from '../clock.ts'
import type { TokenRecord } from '../seams/records.ts'
import { type Context, notFound } from './context.ts'
import { endTokens, showUser } from './users.ts'

/** A session ends so long after login, used or not (contract §2). */
const sessionLife = 7 * 24 * 3600_000
/** Failures of one username from one address, or /64 of IPv6, before the answer is 429. */
const failures = { most: 10, life: 5 * 60_000 }
/** Attempts of one address or /64 under way: a flood from there leaves room for the others (S10). */
const sourceLimit = 16

export interface LoginService {
  /** The same 401 in the same time for an unknown user as for a wrong password. */
  login(input: LoginRequest, address: string): Promise<LoginResult>
  logout(caller: UserCaller): Promise<void>
  me(caller: UserCaller): Promise<Me>
  /** Changes one's own password; every session and token of the user ends. */
  changePassword(caller: UserCaller, former: string, next: string, address: string): Promise<void>
}

const throttleKey = (username: string, source: string) => `${username.toLowerCase()}\n${source}`

export function createLogin(context: Context): LoginService {
  const { store, passwords, shortLived, clock, hints } = context
  /** The last attempt of each key. */
  const last = new Map<string, Promise<unknown>>()
  const underWay = new Map<string, number>()

  /**
   * Counts an attempt as a failure before it is made, until a right password takes that back: guesses sent at once, on several
   * servers too, must not all pass before the first has failed.
   */
  async function count(key: string): Promise<void> {
    const wait = await shortLived.count('login', key, failures)
    if (wait === 0) return
    const retryAfter = Math.ceil(wait / 1000)
    throw new RsmError('too_many', `Too many failed logins; try again in ${retryAfter} s`, { retryAfter })
  }

  /** Attempts of one key go one after the other: a user who logs in many times at once counts once at a time. */
  async function oneByOne<T>(key: string, source: string, attempt: () => Promise<T>): Promise<T> {
    const ofSource = underWay.get(source) ?? 0
    if (ofSource >= sourceLimit)
      throw new RsmError('too_many', 'Too many logins at once; try again in a moment', { retryAfter: 2 })
    underWay.set(source, ofSource + 1)
    const turn = Promise.resolve(last.get(key))
      .catch(() => undefined)
      .then(attempt)
    last.set(key, turn)
    try {
      return await turn
    } finally {
      if (last.get(key) === turn) last.delete(key)
      const left = (underWay.get(source) ?? 1) - 1
      if (left === 0) underWay.delete(source)
      else underWay.set(source, left)
    }
  }

  async function logIn(key: string, { username, password }: LoginRequest): Promise<LoginResult> {
    await count(key)
    const [user] = await store.find('users', 'username', username.toLowerCase())
    const right = await passwords.verify(password, user?.passwordHash)
    if (!right || !user?.enabled) throw new RsmError('unauthenticated', 'Wrong username or password')
    await shortLived.forget('login', key)
    const now = clock.now()
    const { token, tokenHash } = newToken('session')
    const expiresAt = isoTime(now + sessionLife)
    await store.transact(async (tx) => {
      const at = isoTime(now)
      const current = await tx.get('users', user.id)
      // Whatever ended the user's sessions while scrypt ran must end this one too.
      if (current?.passwordHash !== user.passwordHash || !current.enabled)
        throw new RsmError('unauthenticated', 'Wrong username or password')
      tx.put('users', { ...current, lastLoginAt: at })
      const session: TokenRecord = {
        id: await tx.nextId('tokens'),
        kind: 'session',
        name: null,
        tokenHash,
        userId: user.id,
        role: current.role,
        createdAt: at,
        lastUsedAt: at,
        expiresAt,
      }
      tx.put('tokens', session)
    })
    const { id, role } = user
    return { token, expiresAt, user: { id, username: user.username, role } }
  }

  return {
    login(input, address) {
      const source = sourceOf(address)
      const key = throttleKey(input.username, source)
      return oneByOne(key, source, () => logIn(key, input))
    },

    async logout(caller) {
      await store.transact((tx) => tx.remove('tokens', caller.tokenId))
      hints.publish('tokenEnded', { id: caller.tokenId })
    },

    async me(caller) {
      const user = await store.get('users', caller.id)
      if (!user) throw notFound('user', caller.id)
      const token = await store.get('tokens', caller.tokenId)
      const { tokenKind: kind, role, mayOutlast: admin, expiresAt } = caller
      return {
        ...showUser(user),
        token: {
          kind,
          name: token?.name ?? null,
          role,
          admin: admin && role === 'ADMIN',
          expiresAt: isoTime(expiresAt),
        },
      }
    },

    async changePassword(caller, former, next, address) {
      const source = sourceOf(address)
      const key = throttleKey(caller.username, source)
      // A guess here is worth as much as one at the login.
      const verified = await oneByOne(key, source, async () => {
        await count(key)
        const user = await store.get('users', caller.id)
        if (!user || !(await passwords.verify(former, user.passwordHash)))
          throw new RsmError('forbidden', 'The current password is wrong')
        await shortLived.forget('login', key)
        return user.passwordHash
      })
      const passwordHash = await passwords.hash(next)
      const ended = await store.transact(async (tx) => {
        const current = await tx.get('users', caller.id)
        if (!current) throw notFound('user', caller.id)
        // An administrator who set another password meanwhile, or ended the session, meant it.
        if (current.passwordHash !== verified || !(await tx.get('tokens', caller.tokenId)))
          throw new RsmError('unauthenticated', 'This session has ended; log in again')
        tx.put('users', { ...current, passwordHash, updatedAt: context.time() })
        return endTokens(tx, caller.id)
      })
      for (const tokenId of ended) hints.publish('tokenEnded', { id: tokenId })
    },
  }
}
