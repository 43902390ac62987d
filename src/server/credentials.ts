import { RsmError } from '../core/errors.ts'
import type { Caller } from './caller.ts'
import { type Clock, isoTime } from './clock.ts'
import { sha256 } from './digest.ts'
import type { Store, Transaction } from './store/store.ts'
import { kindOfToken } from './tokens.ts'

/** A session ends 12 h after its last use (contract §2) … */
const sessionIdle = 12 * 3600_000
/** … and its last use is written down no more often than this, so that reading costs no write. */
const useGranularity = 10 * 60_000

/** From a bearer token to its holder; undefined for one that is unknown, expired, revoked, or of a disabled user. */
export type Credentials = (token: string) => Promise<Caller | undefined>

export function createCredentials(store: Store, clock: Clock): Credentials {
  /** A full disk refuses this note, but not the request: reads and heartbeats go on (reliability F04). */
  async function noted(work: (tx: Transaction) => Promise<void>): Promise<void> {
    if (store.readOnlyReason !== null) return
    await store.transact(work).catch((error: unknown) => {
      if (!(error instanceof RsmError) || error.code !== 'unavailable') throw error
    })
  }

  async function user(tokenHash: string): Promise<Caller | undefined> {
    const [token] = await store.find('tokens', 'tokenHash', tokenHash)
    if (!token) return undefined
    const now = clock.now()
    const lastUse = Date.parse(token.lastUsedAt)
    if (now >= Date.parse(token.expiresAt)) return undefined
    if (token.kind === 'session' && now >= lastUse + sessionIdle) return undefined
    const owner = await store.get('users', token.userId)
    if (!owner?.enabled) return undefined
    const isNoted = now - lastUse > useGranularity
    if (isNoted) {
      await noted(async (tx) => {
        const current = await tx.get('tokens', token.id)
        if (current) tx.put('tokens', { ...current, lastUsedAt: isoTime(now) })
      })
    }
    return {
      type: 'user',
      id: owner.id,
      username: owner.username,
      role: token.kind === 'session' ? owner.role : token.role,
      tokenId: token.id,
      tokenKind: token.kind,
      expiresAt: Date.parse(token.expiresAt),
      idleAt: token.kind === 'session' ? (isNoted ? now : lastUse) + sessionIdle : Number.POSITIVE_INFINITY,
    }
  }

  async function agent(tokenHash: string): Promise<Caller | undefined> {
    const [host] = await store.find('hosts', 'agentToken', tokenHash)
    if (!host?.agent) return undefined
    if (!host.agent.tokenUsed) {
      await noted(async (tx) => {
        const current = await tx.get('hosts', host.id)
        // Many first calls may come at once; one note is enough.
        if (current?.agent?.tokenHash === tokenHash && !current.agent.tokenUsed)
          tx.put('hosts', { ...current, agent: { ...current.agent, tokenUsed: true } })
      })
    }
    return { type: 'agent', hostId: host.id, agentId: host.agent.agentId }
  }

  /** A token that is used up is known until it expires: its holder may repeat a registration whose answer was lost. */
  async function enrollment(tokenHash: string): Promise<Caller | undefined> {
    const [found] = await store.find('enrollments', 'tokenHash', tokenHash)
    if (!found || clock.now() >= Date.parse(found.expiresAt)) return undefined
    return { type: 'enrollment', id: found.id }
  }

  return async (token) => {
    switch (kindOfToken(token)) {
      case 'session':
      case 'personal':
        return user(sha256(token))
      case 'agent':
        return agent(sha256(token))
      case 'enrollment':
        return enrollment(sha256(token))
      case null:
        return undefined
    }
  }
}
