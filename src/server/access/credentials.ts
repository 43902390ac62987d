import { randomBytes } from 'node:crypto'
import { BoundedMap } from '../../core/bounded-map.ts'
import { RsmError } from '../../core/errors.ts'
import type { Action } from '../../core/permissions.ts'
import { longestBackoff } from '../../core/protocol/bounds.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import { sha256 } from '../../disk/digest.ts'
import {
  type AgentCaller,
  type Caller,
  demand,
  demandLasting,
  standing,
  type UserCaller,
} from '../storage/ports/caller.ts'
import type { Store, Transaction } from '../storage/ports/store.ts'
import type { TokenRecord } from '../storage/records/user.ts'

/** A session ends 12 h after its last use (contract §2) … */
const sessionIdle = 12 * 3600_000
/** … and its last use is recorded at most this often, so that reads cost no write. */
const useGranularity = 10 * 60_000

/** Cache limits: more agents than the largest fleet has, and users. */
const mostAgents = 262_144
const mostUsers = 16_384
const forever = Number.POSITIVE_INFINITY

/** Seconds after which a user's client may retry while the store is unavailable. */
const retryAfter = 2
/** Agents per second that a server can refuse cheaply. */
const cheapRefusals = 200

/** Prefix of each kind of bearer token (contract §2). */
const tokenPrefixes = {
  session: 'rsm_ses_',
  personal: 'rsm_pat_',
  agent: 'rsm_agt_',
  enrollment: 'rsm_enr_',
} as const
type TokenKind = keyof typeof tokenPrefixes
const kinds = Object.entries(tokenPrefixes) as [TokenKind, string][]

/**
 * Returns the holder of a bearer token; undefined if the token is unknown, expired, revoked, or its user is disabled.
 * Cached holders are returned without a promise, because every heartbeat of an agent asks.
 */
export type Credentials = (token: string) => Caller | Promise<Caller | undefined>

/** `isCurrent`: whether the caches still follow the records; if not, every token is `unavailable`. */
export function createCredentials(
  store: Store,
  clock: Clock,
  isCurrent: () => boolean = () => true,
): Credentials {
  const agents = new Remembered<AgentCaller>(({ hostId }) => hostId, mostAgents)
  const users = new Remembered<UserCaller>(({ tokenId }) => tokenId, mostUsers)
  store.watch('hosts', (hostId) => agents.changed(hostId))
  store.watch('tokens', (tokenId) => users.changed(tokenId))
  store.watch('users', (userId) => users.changedWhere(({ id }) => userId === null || id === userId))

  async function user(tokenHash: string): Promise<Known<UserCaller> | undefined> {
    const [token] = await store.find('tokens', 'tokenHash', tokenHash)
    if (!token) return undefined
    const now = clock.now()
    const lastUse = Date.parse(token.lastUsedAt)
    if (!isLive(token, now)) return undefined
    const owner = await store.get('users', token.userId)
    if (!owner?.enabled) return undefined
    const isNoted = now - lastUse > useGranularity
    if (isNoted) await noteUse(store, token.id, now)
    if (isNoted && !(await store.get('tokens', token.id))) return undefined
    const expiresAt = Date.parse(token.expiresAt)
    const caller: UserCaller = {
      ...standing(token, owner),
      type: 'user',
      id: owner.id,
      tokenId: token.id,
      expiresAt,
      idleAt: token.kind === 'session' ? (isNoted ? now : lastUse) + sessionIdle : expiresAt,
    }
    return { caller, until: Math.min(expiresAt, lastUse + useGranularity) }
  }

  async function agent(tokenHash: string): Promise<Known<AgentCaller> | undefined> {
    const [host] = await store.find('hosts', 'agentToken', tokenHash)
    if (!host?.agent) return undefined
    if (!host.agent.tokenUsed) {
      await noted(store, async (tx) => {
        const current = await tx.get('hosts', host.id)
        // Concurrent first calls: one note is enough.
        if (current?.agent?.tokenHash === tokenHash && !current.agent.tokenUsed)
          tx.put('hosts', { ...current, agent: { ...current.agent, tokenUsed: true } })
      })
    }
    // A token revoked during that write must not open a link.
    if (!host.agent.tokenUsed && !(await store.find('hosts', 'agentToken', tokenHash))[0]) return undefined
    const caller: AgentCaller = { type: 'agent', hostId: host.id, agentId: host.agent.agentId, tokenHash }
    // A first use that could not be recorded is retried at the next call.
    return { caller, until: host.agent.tokenUsed ? forever : 0 }
  }

  /** A used-up token stays valid until it expires, because its holder may repeat a registration after a lost answer. */
  async function enrollment(tokenHash: string): Promise<Caller | undefined> {
    const [found] = await store.find('enrollments', 'tokenHash', tokenHash)
    if (!found || clock.now() >= Date.parse(found.expiresAt)) return undefined
    return { type: 'enrollment', id: found.id }
  }

  return (token) => {
    const kind = kindOfToken(token)
    if (kind === null) return Promise.resolve(undefined)
    if (!isCurrent())
      return Promise.reject(
        new RsmError('unavailable', 'the store cannot be reached just now', {
          retryAfter: kind === 'agent' ? agentRetryAfter(agents.size) : retryAfter,
        }),
      )
    if (kind === 'enrollment') return enrollment(sha256(token))
    const known = kind === 'agent' ? agents.get(token) : users.get(token)
    if (known && (known.until === forever || clock.now() < known.until)) return known.caller
    return kind === 'agent'
      ? agents.remember(token, agent(sha256(token)))
      : users.remember(token, user(sha256(token)))
  }
}

/** Cached caller, valid until `until` or until its records change. */
interface Known<C extends Caller = Caller> {
  caller: C
  /** Milliseconds since the epoch. */
  until: number
}

/** Cache of callers by token; a change of a caller's record evicts it. `idOf` returns the id of that record. */
class Remembered<C extends Caller> {
  readonly #known: BoundedMap<string, Known<C>>
  readonly #tokens = new Map<number, string>()
  readonly #idOf: (caller: C) => number
  /** Counts changes: a lookup that overlaps one may be out of date. */
  #changes = 0

  constructor(idOf: (caller: C) => number, most: number) {
    this.#idOf = idOf
    this.#known = new BoundedMap(most, (_, { caller }) => this.#tokens.delete(idOf(caller)))
  }

  get size(): number {
    return this.#known.size
  }

  get(token: string): Known<C> | undefined {
    return this.#known.get(token)
  }

  /** Caches valid tokens only, so that a flood of invalid ones evicts none of them. */
  async remember(token: string, lookup: Promise<Known<C> | undefined>): Promise<C | undefined> {
    const before = this.#changes
    const found = await lookup
    if (!found || this.#changes !== before) return found?.caller
    this.#forget(this.#idOf(found.caller))
    this.#known.set(token, found)
    this.#tokens.set(this.#idOf(found.caller), token)
    return found.caller
  }

  /** `id` null: evicts all. */
  changed(id: number | null): void {
    if (id === null) return this.changedWhere(() => true)
    this.#changes++
    this.#forget(id)
  }

  changedWhere(isMeant: (caller: C) => boolean): void {
    this.#changes++
    for (const { caller } of this.#known.values()) if (isMeant(caller)) this.#forget(this.#idOf(caller))
  }

  #forget(id: number): void {
    const token = this.#tokens.get(id)
    if (token === undefined) return
    this.#tokens.delete(id)
    this.#known.delete(token)
  }
}

/** Retry-After in seconds for each of `count` agents, so that refusals do not overload the server. */
const agentRetryAfter = (count: number): number =>
  Math.min(longestBackoff / 1000, Math.max(retryAfter, Math.ceil(count / cheapRefusals)))

/** Expiry of a token that is not used again, including the idle limit of a session. Milliseconds since 1970. */
export function lastsUntil({ kind, expiresAt, lastUsedAt }: TokenRecord): number {
  const expires = Date.parse(expiresAt)
  return kind === 'session' ? Math.min(expires, Date.parse(lastUsedAt) + sessionIdle) : expires
}

export const isLive = (token: TokenRecord, now: number): boolean => now < lastsUntil(token)

export async function noteUse(store: Store, tokenId: number, now: number): Promise<void> {
  const token = await store.get('tokens', tokenId)
  if (!token || now - Date.parse(token.lastUsedAt) <= useGranularity) return
  await noted(store, async (tx) => {
    const current = await tx.get('tokens', tokenId)
    if (current) tx.put('tokens', { ...current, lastUsedAt: isoTime(now) })
  })
}

/** Writes a note of use; a full disk must not fail the read or heartbeat that it belongs to (reliability F04). */
async function noted(store: Store, work: (tx: Transaction) => Promise<void>): Promise<void> {
  if (store.readOnlyReason !== null) return
  await store.transact(work).catch((error: unknown) => {
    if (!(error instanceof RsmError) || error.code !== 'unavailable') throw error
  })
}

/** A new opaque token of 256 bits, and its SHA-256; the store keeps only the hash. */
export function newToken(kind: TokenKind): { token: string; tokenHash: string } {
  const token = tokenPrefixes[kind] + randomBytes(32).toString('base64url')
  return { token, tokenHash: sha256(token) }
}

function kindOfToken(token: string): TokenKind | null {
  for (const [kind, prefix] of kinds) if (token.startsWith(prefix)) return kind
  return null
}

const mostLastKnown = 1024

/**
 * Credentials with a cache of users' tokens for store outages: a token that was valid before is accepted until it
 * expires or its revocation is known. Only for `/metrics`, which must report the outage and shows no secrets.
 */
export function lastKnown(store: Store, clock: Clock, credentials: Credentials): Credentials {
  /** By hash of the token. */
  const known = new BoundedMap<string, UserCaller>(mostLastKnown)
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

/**
 * Throws unless the caller's token is still valid and its user enabled and allowed to do this: a token that ended
 * while the work waited must not create anything. `lasting`: for work that may outlast the token.
 */
export async function stillAllowed(
  tx: Pick<Transaction, 'get'>,
  caller: UserCaller,
  action: Action,
  { lasting = false } = {},
): Promise<void> {
  const token = await tx.get('tokens', caller.tokenId)
  const owner = await tx.get('users', caller.id)
  if (!token || !owner?.enabled)
    throw new RsmError('unauthenticated', 'This token is unknown, has expired or was revoked')
  const now = standing(token, owner)
  demand(now, action)
  if (lasting) demandLasting(now)
}
