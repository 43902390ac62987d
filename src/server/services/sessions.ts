import type { Session } from '../../core/protocol/http/users.ts'
import type { SessionService } from '../../core/services.ts'
import { isoTime } from '../../disk/clock.ts'
import { isLive, lastsUntil } from '../access/credentials.ts'
import { pageOf, slicePage } from '../storage/paging.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { Transaction } from '../storage/ports/store.ts'
import type { TokenRecord } from '../storage/records/user.ts'
import { type Context, type ForCallers, notFound } from './context.ts'

const isOwn = ({ id }: UserCaller, token: Readonly<TokenRecord> | undefined) =>
  token?.kind === 'session' && token.userId === id

function toApi(caller: UserCaller, token: Readonly<TokenRecord>): Session {
  const { id, address = null, userAgent = null, createdAt, lastUsedAt } = token
  const current = id === caller.tokenId
  return { id, current, address, userAgent, createdAt, lastUsedAt, expiresAt: isoTime(lastsUntil(token)) }
}

/** The caller's own logins (contract §2); those of other users are not found. */
export function createSessions({ store, clock, hints }: Context): ForCallers<SessionService> {
  const ofCaller = async (from: Pick<Transaction, 'find'>, caller: UserCaller) =>
    (await from.find('tokens', 'userId', caller.id)).filter(
      (token) => isOwn(caller, token) && isLive(token, clock.now()),
    )

  return {
    async list(caller, query) {
      const sessions = (await ofCaller(store, caller)).toSorted(
        (a, b) => Date.parse(b.lastUsedAt) - Date.parse(a.lastUsedAt) || b.id - a.id,
      )
      const dtos = slicePage(sessions, query).map((token) => toApi(caller, token))
      return pageOf(dtos, sessions.length, query)
    },
    async remove(caller, id) {
      await store.transact(async (tx) => {
        const token = await tx.get('tokens', id)
        if (!token || !isOwn(caller, token) || !isLive(token, clock.now())) throw notFound('session', id)
        tx.remove('tokens', id)
      })
      hints.publish('tokenEnded', { id })
      return { id }
    },
    async removeOthers(caller) {
      const ended = await store.transact(async (tx) => {
        const others = (await ofCaller(tx, caller)).filter(({ id }) => id !== caller.tokenId)
        for (const { id } of others) tx.remove('tokens', id)
        return others
      })
      for (const { id } of ended) hints.publish('tokenEnded', { id })
      return { ended: ended.length }
    },
  }
}
