import { RsmError } from '../../core/errors.ts'
import type { LoginRequest, LoginResult, Me } from '../../core/protocol/http/users.ts'
import { isoTime } from '../../disk/clock.ts'
import { newToken } from '../access/credentials.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { TokenRecord } from '../storage/records/user.ts'
import { type Context, notFound } from './context.ts'
import { Attempts, type Throttle } from './login-attempts.ts'
import { SecondFactor } from './totp.ts'
import { endTokens, userToApi } from './users.ts'

/** Milliseconds from login after which a session ends, used or not (contract §2). */
const sessionLife = 7 * 24 * 3600_000
/** Characters. */
const mostOfUserAgent = 200

export interface LoginService {
  /** Unknown users and wrong passwords get the same 401 in the same time. `userAgent` is kept with the session. */
  login(input: LoginRequest, address: string, userAgent?: string): Promise<LoginResult>
  logout(caller: UserCaller): Promise<void>
  me(caller: UserCaller): Promise<Me>
  /** Changes one's own password; ends all sessions and tokens of the user. */
  changePassword(caller: UserCaller, currentPassword: string, next: string, address: string): Promise<void>
}

const badCode = (message: string) =>
  new RsmError('unauthenticated', message, { fields: [{ field: 'code', message }] })

export function createLogin(context: Context): LoginService {
  const { store, passwords, shortLived, clock, hints } = context
  const attempts = new Attempts(shortLived)
  const factor = new SecondFactor(context)

  async function logIn(
    throttle: Throttle,
    { username, password, code }: LoginRequest,
    origin: Pick<TokenRecord, 'address' | 'userAgent'>,
  ): Promise<LoginResult> {
    await throttle.count()
    const [user] = await store.find('users', 'username', username.toLowerCase())
    const right = await passwords.verify(password, user?.passwordHash)
    if (!right || !user?.enabled) throw new RsmError('unauthenticated', 'Wrong username or password')
    if (user.totp?.isOn) {
      if (code === undefined) throw badCode('This user also needs a code from an authenticator app')
      await factor.count(user.id)
    }
    const now = clock.now()
    const { token, tokenHash } = newToken('session')
    const expiresAt = isoTime(now + sessionLife)
    await store.transact(async (tx) => {
      const at = isoTime(now)
      const current = await tx.get('users', user.id)
      // Changes that ended the user's sessions during scrypt must prevent this one too.
      if (current?.passwordHash !== user.passwordHash || !current.enabled)
        throw new RsmError('unauthenticated', 'Wrong username or password')
      const totp = current.totp?.isOn ? factor.used(current, code ?? '') : current.totp
      if (totp === null) throw badCode('The code is wrong, or was used before')
      tx.put('users', { ...current, ...(totp && { totp }), lastLoginAt: at })
      const session: TokenRecord = {
        id: await tx.nextId('tokens'),
        kind: 'session',
        name: null,
        tokenHash,
        userId: user.id,
        role: current.role,
        ...origin,
        createdAt: at,
        lastUsedAt: at,
        expiresAt,
      }
      tx.put('tokens', session)
    })
    await throttle.forgive()
    if (user.totp?.isOn) await factor.forgive(user.id)
    const { id, role } = user
    return { token, expiresAt, user: { id, username: user.username, role } }
  }

  return {
    login(input, address, userAgent) {
      const origin = { address, ...(userAgent && { userAgent: userAgent.slice(0, mostOfUserAgent) }) }
      return attempts.oneByOne(input.username, address, (throttle) => logIn(throttle, input, origin))
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
        ...userToApi(user),
        token: {
          kind,
          name: token?.name ?? null,
          role,
          admin: admin && role === 'ADMIN',
          expiresAt: isoTime(expiresAt),
        },
      }
    },

    async changePassword(caller, currentPassword, next, address) {
      // Throttle guesses here as at login.
      const verified = await attempts.oneByOne(caller.username, address, async (throttle) => {
        await throttle.count()
        const user = await store.get('users', caller.id)
        if (!user || !(await passwords.verify(currentPassword, user.passwordHash)))
          throw new RsmError('forbidden', 'The current password is wrong')
        await throttle.forgive()
        return user.passwordHash
      })
      const passwordHash = await passwords.hash(next)
      const ended = await store.transact(async (tx) => {
        const current = await tx.get('users', caller.id)
        if (!current) throw notFound('user', caller.id)
        // An administrator may have set another password or ended the session meanwhile; that takes precedence.
        if (current.passwordHash !== verified || !(await tx.get('tokens', caller.tokenId)))
          throw new RsmError('unauthenticated', 'This session has ended; log in again')
        tx.put('users', { ...current, passwordHash, updatedAt: context.time() })
        return endTokens(tx, caller.id)
      })
      for (const tokenId of ended) hints.publish('tokenEnded', { id: tokenId })
    },
  }
}
