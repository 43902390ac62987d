import { invalid, RsmError } from '../../core/errors.ts'
import type { TotpConfirm, TotpConfirmed, TotpCreate, TotpCreated } from '../../core/protocol/http/users.ts'
import { newRecoveryCodes, newSecret, plainCode, stepOf, stepsTaken, uriOf } from '../access/totp.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { Transaction } from '../storage/ports/store.ts'
import type { Totp, UserRecord } from '../storage/records/user.ts'
import { type Context, notFound } from './context.ts'
import { Attempts } from './login-attempts.ts'

const recoveryCodes = 10

/** Attempts per user from all sources; a client that gets this far knows the password. */
const codeTries = { most: 20, life: 5 * 60_000 }

/** A user's own second factor: codes of an authenticator app (contract §2). */
interface TotpService {
  /** Creates an app secret; logins require codes once one is confirmed. The app shows `server` beside the user. */
  create(caller: UserCaller, input: TotpCreate, address: string, server: string): Promise<TotpCreated>
  confirm(caller: UserCaller, input: TotpConfirm): Promise<TotpConfirmed>
  remove(caller: UserCaller, input: TotpConfirm): Promise<void>
}

export function createTotp(context: Context): TotpService {
  const { store, passwords, keys } = context
  const attempts = new Attempts(context.shortLived)
  const factor = new SecondFactor(context)

  async function own(from: Pick<Transaction, 'get'>, { id }: UserCaller): Promise<UserRecord> {
    const user = await from.get('users', id)
    if (!user) throw notFound('user', id)
    return user
  }

  function refuseOn({ totp }: UserRecord): void {
    if (totp?.isOn)
      throw new RsmError(
        'conflict',
        'An authenticator app is already enabled; to change it: rsm totp disable, then rsm totp enable',
      )
  }

  return {
    async create(caller, { currentPassword }, address, server) {
      // Throttle guesses here as at login.
      const verified = await attempts.oneByOne(caller.username, address, async (throttle) => {
        await throttle.count()
        const { passwordHash } = await own(store, caller)
        if (!(await passwords.verify(currentPassword, passwordHash)))
          throw new RsmError('forbidden', 'The current password is wrong')
        await throttle.forgive()
        return passwordHash
      })
      const secret = newSecret()
      await store.transact(async (tx) => {
        const user = await own(tx, caller)
        refuseOn(user)
        if (user.passwordHash !== verified)
          throw new RsmError('unauthenticated', 'This session has ended; log in again')
        const totp = { secret: keys.seal(secret, sealedFor(user.id)), isOn: false, lastStep: 0, recovery: [] }
        tx.put('users', { ...user, totp, updatedAt: context.time() })
      })
      return { secret, uri: uriOf(secret, caller.username, server) }
    },

    async confirm(caller, { code }) {
      await factor.count(caller.id)
      const codes = newRecoveryCodes(recoveryCodes)
      await store.transact(async (tx) => {
        const user = await own(tx, caller)
        refuseOn(user)
        if (!user.totp)
          throw new RsmError('conflict', 'No authenticator app is being set up: rsm totp enable')
        const used = factor.used(user, code)
        if (!used) throw wrongCode()
        const recovery = codes.map((each) => keys.digest(plainCode(each)))
        tx.put('users', { ...user, totp: { ...used, isOn: true, recovery }, updatedAt: context.time() })
      })
      await factor.forgive(caller.id)
      return { recoveryCodes: codes }
    },

    async remove(caller, { code }) {
      await factor.count(caller.id)
      await store.transact(async (tx) => {
        const user = await own(tx, caller)
        if (!user.totp?.isOn) throw new RsmError('conflict', 'No authenticator app is enabled')
        if (!factor.used(user, code)) throw wrongCode()
        const { totp: _, ...rest } = user
        tx.put('users', { ...rest, updatedAt: context.time() })
      })
      await factor.forgive(caller.id)
    },
  }
}

const wrongCode = () => invalid([{ field: 'code', message: 'is wrong, or was used before' }])

/** Context for which the secret of a user's app is sealed. */
const sealedFor = (userId: number): string => `users/${userId}/totp`

/** Whether a step's code was used. Ignores a last step far ahead, which a wrong server clock left behind. */
const isUsed = (step: number, lastStep: number): boolean => step <= lastStep && lastStep - step < stepsTaken

/** Checks codes of an authenticator app, or recovery codes, in addition to the password (contract §2). */
export class SecondFactor {
  readonly #context: Pick<Context, 'keys' | 'shortLived' | 'clock'>

  constructor(context: Pick<Context, 'keys' | 'shortLived' | 'clock'>) {
    this.#context = context
  }

  /** Counts an attempt up front, so that concurrent guesses cannot all pass. Errors: `too_many`. */
  async count(userId: number): Promise<void> {
    const wait = await this.#context.shortLived.count('code', String(userId), codeTries)
    if (wait === 0) return
    const retryAfter = Math.ceil(wait / 1000)
    throw new RsmError('too_many', `Too many wrong codes; try again in ${retryAfter} s`, { retryAfter })
  }

  async forgive(userId: number): Promise<void> {
    await this.#context.shortLived.forget('code', String(userId))
  }

  /** The stored factor after this code was used, because each counts once; null if the code is wrong. */
  used(user: UserRecord, typed: string): Totp | null {
    const { totp } = user
    if (totp === undefined) return null
    const { keys, clock } = this.#context
    const code = plainCode(typed)
    const step = stepOf(this.#secretOf(user, totp), code, clock.now())
    if (step !== null) return isUsed(step, totp.lastStep) ? null : { ...totp, lastStep: step }
    const digest = keys.digest(code)
    if (!totp.recovery.includes(digest)) return null
    return { ...totp, recovery: totp.recovery.filter((each) => each !== digest) }
  }

  /** Fails if the key is missing: new keys must not disable the second factor. */
  #secretOf({ id, username }: UserRecord, { secret }: Totp): string {
    try {
      return this.#context.keys.open(secret, sealedFor(id))
    } catch (cause) {
      throw new RsmError(
        'unauthenticated',
        `The key of ${username}'s authenticator app secret is lost; on the server's machine: rsm server reset-password ${username}`,
        { cause },
      )
    }
  }
}
