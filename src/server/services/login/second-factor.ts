import { RsmError } from '../../../core/errors.ts'
import { plainCode, stepOf, stepsTaken } from '../../access/totp.ts'
import type { Totp, UserRecord } from '../../storage/records/user.ts'
import type { Context } from '../context.ts'

/** Tries of codes for one user, from anywhere: whoever gets so far knows the password. */
const tries = { most: 20, life: 5 * 60_000 }

/** The place for which the secret of a user's app is sealed. */
export const sealedFor = (userId: number): string => `users/${userId}/totp`

/** A newest step far ahead was noted while the server's clock was wrong: it says nothing of the present ones. */
const isUsed = (step: number, lastStep: number): boolean => step <= lastStep && lastStep - step < stepsTaken

/** Codes of one's app, or one of the recovery codes, beside the password (contract §2). */
export class SecondFactor {
  readonly #context: Pick<Context, 'keys' | 'shortLived' | 'clock'>

  constructor(context: Pick<Context, 'keys' | 'shortLived' | 'clock'>) {
    this.#context = context
  }

  /** Counts a try before it is made, as guesses sent at once must not all pass. Errors: `too_many`. */
  async count(userId: number): Promise<void> {
    const wait = await this.#context.shortLived.count('code', String(userId), tries)
    if (wait === 0) return
    const retryAfter = Math.ceil(wait / 1000)
    throw new RsmError('too_many', `Too many wrong codes; try again in ${retryAfter} s`, { retryAfter })
  }

  /** The code was right. */
  async forgive(userId: number): Promise<void> {
    await this.#context.shortLived.forget('code', String(userId))
  }

  /** What is kept once this code has been used, as each counts once; null where it is wrong. */
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

  /** Whoever starts the server with new keys must not thereby let people in by their passwords alone. */
  #secretOf({ id, username }: UserRecord, { secret }: Totp): string {
    try {
      return this.#context.keys.open(secret, sealedFor(id))
    } catch (cause) {
      throw new RsmError(
        'unauthenticated',
        `The key that sealed the secret of the authenticator app of ${username} is lost; on the server's machine: rsm server reset-password ${username}`,
        { cause },
      )
    }
  }
}
