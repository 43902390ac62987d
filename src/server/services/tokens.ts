import { invalid, RsmError } from '../../core/errors.ts'
import { reaches } from '../../core/permissions.ts'
import { defaultTokenDays, type Token } from '../../core/protocol/http/users.ts'
import type { TokenService } from '../../core/services.ts'
import { isoTime } from '../../disk/clock.ts'
import { newToken } from '../access/credentials.ts'
import { storePage } from '../storage/paging.ts'
import { refusal, type UserCaller } from '../storage/ports/caller.ts'
import type { TokenRecord } from '../storage/records/user.ts'
import { type Context, type ForCallers, notFound } from './context.ts'

const day = 24 * 3600_000
/** Limits the tokens of one user. */
const mostTokens = 1000

function toApi({ id, name, role, admin = false, createdAt, lastUsedAt, expiresAt }: TokenRecord): Token {
  return { id, name, role, admin, createdAt, lastUsedAt, expiresAt }
}

const isOwn = ({ id }: UserCaller, token: Readonly<TokenRecord> | undefined) =>
  token?.kind === 'personal' && token.userId === id

/** The caller's own personal access tokens (contract §2); those of other users are not found. */
export function createTokens(context: Context): ForCallers<TokenService> {
  const { store, clock, hints } = context

  return {
    async list(caller, query) {
      const where = {
        equals: { userId: caller.id, kind: 'personal', name: query.name?.toLowerCase() },
      } as const
      return storePage(store, 'tokens', query, { where }, (items) => items.map(toApi))
    },
    async create(caller, input) {
      const role = input.role ?? caller.role
      // The caller's role, not the owner's: a token must not create one with more rights.
      if (!reaches(caller.role, role)) throw refusal(caller, `a token of role ${role} requires ${role}`)
      if (input.admin && role !== 'ADMIN')
        throw invalid([{ field: 'admin', message: `requires the role ADMIN; this token has ${role}` }])
      const { token, tokenHash } = newToken('personal')
      const now = clock.now()
      const at = isoTime(now)
      const record = await store.transact(async (tx) => {
        const owner = await tx.get('users', caller.id)
        // If the caller's own token ended meanwhile, no new one may be created.
        if (!owner?.enabled || !(await tx.get('tokens', caller.tokenId)))
          throw new RsmError('unauthenticated', 'This token is unknown, has expired or was revoked')
        const own = await tx.find('tokens', 'userId', caller.id)
        if (own.filter((token) => isOwn(caller, token)).length >= mostTokens)
          throw new RsmError('conflict', `You have ${mostTokens} tokens; delete some first`)
        const created: TokenRecord = {
          id: await tx.nextId('tokens'),
          kind: 'personal',
          name: input.name,
          tokenHash,
          userId: caller.id,
          role,
          ...(input.admin && { admin: true }),
          createdAt: at,
          lastUsedAt: at,
          expiresAt: isoTime(now + (input.expiresInDays ?? defaultTokenDays) * day),
        }
        tx.put('tokens', created)
        return created
      })
      return { ...toApi(record), token }
    },
    async remove(caller, id) {
      await store.transact(async (tx) => {
        if (!isOwn(caller, await tx.get('tokens', id))) throw notFound('token', id)
        tx.remove('tokens', id)
      })
      hints.publish('tokenEnded', { id })
      return { id }
    },
  }
}
