import { invalid, RsmError } from '../../core/errors.ts'
import { reaches } from '../../core/permissions.ts'
import { defaultTokenDays, type Session, type Token, type User } from '../../core/protocol/http/users.ts'
import type { SessionService, TokenService, UserService } from '../../core/services.ts'
import { isoTime } from '../../disk/clock.ts'
import { isLive, lastsUntil, newToken, stillAllowed } from '../access/credentials.ts'
import { pageOf, slicePage, storePage } from '../storage/paging.ts'
import { demandSession, refusal, type UserCaller } from '../storage/ports/caller.ts'
import type { Transaction } from '../storage/ports/store.ts'
import type { TokenRecord, UserRecord } from '../storage/records/user.ts'
import { type Context, type ForCallers, notFound, patched } from './context.ts'

export function userToApi(record: UserRecord): User {
  const { id, username, role, rights = [], email, enabled, lastLoginAt, createdAt, updatedAt } = record
  const totp = record.totp?.isOn === true
  return { id, username, role, rights: [...rights], email, enabled, totp, lastLoginAt, createdAt, updatedAt }
}

/** Ends every session and token of a user within the transaction; returns their ids, to close connections. */
export async function endTokens(tx: Transaction, userId: number): Promise<number[]> {
  const tokens = await tx.find('tokens', 'userId', userId)
  for (const { id } of tokens) tx.remove('tokens', id)
  return tokens.map(({ id }) => id)
}

/** Rejects deleting, disabling or demoting the last enabled ADMIN (contract §3). */
async function keepAnAdmin(tx: Transaction, without: number): Promise<void> {
  await tx.lock('admins')
  const { items } = await tx.query('users', { where: { equals: { role: 'ADMIN', enabled: true } }, limit: 2 })
  if (items.every(({ id }) => id === without))
    throw new RsmError('conflict', 'This is the last enabled ADMIN; make another user ADMIN first')
}

export function createUsers(context: Context): ForCallers<UserService> {
  const { store, passwords, hints } = context
  const announce = (ended: number[]) => {
    for (const tokenId of ended) hints.publish('tokenEnded', { id: tokenId })
  }

  return {
    async list(_, query) {
      const where = {
        equals: { username: query.name?.toLowerCase() },
        contains: { fields: ['username', 'email'], text: query.search },
      } as const
      return storePage(store, 'users', query, { where }, (items) => items.map(userToApi))
    },
    async get(_, id) {
      const record = await store.get('users', id)
      if (!record) throw notFound('user', id)
      return userToApi(record)
    },
    async create(caller, input) {
      if (input.rights !== undefined) demandSession(caller)
      const passwordHash = await passwords.hash(input.password)
      const at = context.time()
      return store.transact(async (tx) => {
        await stillAllowed(tx, caller, 'administer', { lasting: true })
        const record: UserRecord = {
          id: await tx.nextId('users'),
          username: input.username,
          role: input.role,
          ...(input.rights && { rights: input.rights }),
          email: input.email ?? null,
          enabled: true,
          passwordHash,
          lastLoginAt: null,
          createdAt: at,
          updatedAt: at,
        }
        tx.put('users', record)
        return userToApi(record)
      })
    },
    async update(caller, id, patch) {
      if (patch.rights !== undefined) demandSession(caller)
      const passwordHash = patch.password === undefined ? null : await passwords.hash(patch.password)
      const { user, ended } = await store.transact(async (tx) => {
        await stillAllowed(tx, caller, 'administer', { lasting: true })
        const current = await tx.get('users', id)
        if (!current) throw notFound('user', id)
        const { totp, ...rest } = current
        const next: UserRecord = {
          ...rest,
          ...(totp && patch.totp !== false && { totp }),
          username: patch.username ?? current.username,
          role: patch.role ?? current.role,
          ...(patch.rights && { rights: patch.rights }),
          email: patched(patch.email, current.email, null),
          enabled: patch.enabled ?? current.enabled,
          passwordHash: passwordHash ?? current.passwordHash,
          updatedAt: context.time(),
        }
        if (next.role !== 'ADMIN' || !next.enabled) await keepAnAdmin(tx, id)
        tx.put('users', next)
        const changed = passwordHash !== null || next.role !== current.role || !next.enabled
        return { user: userToApi(next), ended: changed ? await endTokens(tx, id) : [] }
      })
      announce(ended)
      return user
    },
    async remove(caller, id) {
      const ended = await store.transact(async (tx) => {
        await stillAllowed(tx, caller, 'administer', { lasting: true })
        if (!(await tx.get('users', id))) throw notFound('user', id)
        await keepAnAdmin(tx, id)
        tx.remove('users', id)
        return endTokens(tx, id)
      })
      announce(ended)
      return { id }
    },
  }
}

const isOwnSession = ({ id }: UserCaller, token: Readonly<TokenRecord> | undefined) =>
  token?.kind === 'session' && token.userId === id

function sessionToApi(caller: UserCaller, token: Readonly<TokenRecord>): Session {
  const { id, address = null, userAgent = null, createdAt, lastUsedAt } = token
  const current = id === caller.tokenId
  return { id, current, address, userAgent, createdAt, lastUsedAt, expiresAt: isoTime(lastsUntil(token)) }
}

/** The caller's own logins (contract §2); those of other users are not found. */
export function createSessions({ store, clock, hints }: Context): ForCallers<SessionService> {
  const ofCaller = async (from: Pick<Transaction, 'find'>, caller: UserCaller) =>
    (await from.find('tokens', 'userId', caller.id)).filter(
      (token) => isOwnSession(caller, token) && isLive(token, clock.now()),
    )

  return {
    async list(caller, query) {
      const sessions = (await ofCaller(store, caller)).toSorted(
        (a, b) => Date.parse(b.lastUsedAt) - Date.parse(a.lastUsedAt) || b.id - a.id,
      )
      const dtos = slicePage(sessions, query).map((token) => sessionToApi(caller, token))
      return pageOf(dtos, sessions.length, query)
    },
    async remove(caller, id) {
      await store.transact(async (tx) => {
        const token = await tx.get('tokens', id)
        if (!token || !isOwnSession(caller, token) || !isLive(token, clock.now()))
          throw notFound('session', id)
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

const day = 24 * 3600_000
/** Limits the tokens of one user. */
const mostTokens = 1000

function tokenToApi({ id, name, role, admin = false, createdAt, lastUsedAt, expiresAt }: TokenRecord): Token {
  return { id, name, role, admin, createdAt, lastUsedAt, expiresAt }
}

const isOwnToken = ({ id }: UserCaller, token: Readonly<TokenRecord> | undefined) =>
  token?.kind === 'personal' && token.userId === id

/** The caller's own personal access tokens (contract §2); those of other users are not found. */
export function createTokens(context: Context): ForCallers<TokenService> {
  const { store, clock, hints } = context

  return {
    async list(caller, query) {
      const where = {
        equals: { userId: caller.id, kind: 'personal', name: query.name?.toLowerCase() },
      } as const
      return storePage(store, 'tokens', query, { where }, (items) => items.map(tokenToApi))
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
        if (own.filter((token) => isOwnToken(caller, token)).length >= mostTokens)
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
      return { ...tokenToApi(record), token }
    },
    async remove(caller, id) {
      await store.transact(async (tx) => {
        if (!isOwnToken(caller, await tx.get('tokens', id))) throw notFound('token', id)
        tx.remove('tokens', id)
      })
      hints.publish('tokenEnded', { id })
      return { id }
    },
  }
}
