import { invalid, RsmError } from '../../core/errors.ts'
import type { TotpConfirm, TotpConfirmed, TotpCreate, TotpCreated } from '../../core/protocol/http/totp.ts'
import { newRecoveryCodes, newSecret, plainCode, uriOf } from '../access/totp.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { Transaction } from '../storage/ports/store.ts'
import type { UserRecord } from '../storage/records/user.ts'
import { type Context, notFound } from './context.ts'
import { Attempts } from './login/attempts.ts'
import { SecondFactor, sealedFor } from './login/second-factor.ts'

const recoveryCodes = 10

/** A user's own second factor: codes of an authenticator app (contract §2). */
export interface TotpService {
  /** A secret for an app; logins take a code once one of it was confirmed. `server` is what the app shows beside the user. */
  create(caller: UserCaller, input: TotpCreate, address: string, server: string): Promise<TotpCreated>
  confirm(caller: UserCaller, input: TotpConfirm): Promise<TotpConfirmed>
  /** Logins take the password alone again. */
  remove(caller: UserCaller, input: TotpConfirm): Promise<void>
}

const wrongCode = () => invalid([{ field: 'code', message: 'is wrong, or was used before' }])

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
        'You log in with codes already; to change the app: rsm totp disable, then rsm totp enable',
      )
  }

  return {
    async create(caller, { currentPassword }, address, server) {
      // A guess here is worth as much as one at the login.
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
        if (!user.totp?.isOn) throw new RsmError('conflict', 'You log in without codes')
        if (!factor.used(user, code)) throw wrongCode()
        const { totp: _, ...rest } = user
        tx.put('users', { ...rest, updatedAt: context.time() })
      })
      await factor.forgive(caller.id)
    },
  }
}
