import { BoundedMap } from '../../core/bounded-map.ts'
import { RsmError } from '../../core/errors.ts'
import type { Clock } from '../../disk/clock.ts'
import { sha256 } from '../../disk/digest.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Credentials } from './credentials.ts'

/** Bound of the cache; the least recently used token is evicted. */
const mostTokens = 1024

/**
 * Credentials with a cache of users' tokens for outages of the store. A token that was valid before is accepted until it
 * expires, or its revocation is known. Only for `/metrics`, which has to report the outage and shows no secrets.
 */
export function lastKnown(store: Store, clock: Clock, credentials: Credentials): Credentials {
  /** By hash of the token. */
  const known = new BoundedMap<string, UserCaller>(mostTokens)
  let changes = 0
  function forget(isMeant: (caller: UserCaller) => boolean): void {
    changes++
    for (const [hash, caller] of known) if (isMeant(caller)) known.delete(hash)
  }
  store.watch('tokens', (id) => forget(({ tokenId }) => id === null || tokenId === id))
  store.watch('users', (id) => forget((caller) => id === null || caller.id === id))

  return async (token) => {
    const hash = sha256(token)
    const before = changes
    try {
      const caller = await credentials(token)
      known.delete(hash)
      // A change during the lookup may be the token's revocation.
      if (caller?.type === 'user' && changes === before) known.set(hash, caller)
      return caller
    } catch (error) {
      if (!(error instanceof RsmError) || error.code !== 'unavailable') throw error
      const caller = known.get(hash)
      if (!caller || clock.now() >= caller.idleAt) throw error
      return caller
    }
  }
}
