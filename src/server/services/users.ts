import { RsmError } from '../../core/errors.ts'
import type { User } from '../../core/protocol/http/users.ts'
import type { UserService } from '../../core/services.ts'
import { stillAllowed } from '../access/credentials.ts'
import { storePage } from '../storage/paging.ts'
import { demandSession } from '../storage/ports/caller.ts'
import type { Transaction } from '../storage/ports/store.ts'
import type { UserRecord } from '../storage/records/user.ts'
import { type Context, type ForCallers, notFound } from './context.ts'
import { patched } from './merge-patch.ts'

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
