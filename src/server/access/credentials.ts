import { RsmError } from '../../core/errors.ts'
import { type Clock, isoTime } from '../clock.ts'
import { sha256 } from '../digest.ts'
import type { TokenRecord } from '../seams/records.ts'
import type { Store, Transaction } from '../seams/store.ts'
import type { Caller } from './caller.ts'
import { standing } from './standing.ts'
import { kindOfToken } from './tokens.ts'

/** A session ends 12 h after its last use (contract §2) … */
const sessionIdle = 12 * 3600_000
/** … and its last use is written down no more often than this, so that reading costs no write. */
const useGranularity = 10 * 60_000

/** So many tokens in use are known without asking the store: more than the agents of a large fleet. */
const maxKnown = 16_384
const forever = Number.POSITIVE_INFINITY

/**
 * From a bearer token to its holder; undefined for one that is unknown, expired, revoked, or of a disabled user. Without
 * a promise where it is known and nothing that it rests on has changed: an agent's heartbeat asks this each time.
 */
export type Credentials = (token: string) => Caller | Promise<Caller | undefined>

/** What a token stands for, as long as the records it follows from are those of this revision, and until then. */
interface Known {
  caller: Caller
  revision: number
  /** Milliseconds since the epoch. */
  until: number
}

/** Whether a token lasts still: neither expired nor, as a session, unused for too long. */
export function isLive({ kind, expiresAt, lastUsedAt }: TokenRecord, now: number): boolean {
  if (now >= Date.parse(expiresAt)) return false
  return kind !== 'session' || now < Date.parse(lastUsedAt) + sessionIdle
}

/** Writes down that a token is in use; a disk that refuses that is no reason to stop what goes on. */
export async function noteUse(store: Store, tokenId: number, now: number): Promise<void> {
  const token = await store.get('tokens', tokenId)
  if (!token || now - Date.parse(token.lastUsedAt) <= useGranularity || store.readOnlyReason !== null) return
  await store
    .transact(async (tx) => {
      const current = await tx.get('tokens', tokenId)
      if (current) tx.put('tokens', { ...current, lastUsedAt: isoTime(now) })
    })
    .catch((error: unknown) => {
      if (!(error instanceof RsmError) || error.code !== 'unavailable') throw error
    })
}

export function createCredentials(store: Store, clock: Clock): Credentials {
  /** A full disk refuses this note, but not the request: reads and heartbeats go on (reliability F04). */
  async function noted(work: (tx: Transaction) => Promise<void>): Promise<void> {
    if (store.readOnlyReason !== null) return
    await store.transact(work).catch((error: unknown) => {
      if (!(error instanceof RsmError) || error.code !== 'unavailable') throw error
    })
  }

  /** Rises with every change of what a caller of this type follows from, so a revoked token ends at once. */
  const revisionOf = (type: Caller['type']) =>
    type === 'user' ? store.revision('tokens') + store.revision('users') : store.revision('hosts')

  async function user(tokenHash: string): Promise<Known | undefined> {
    const revision = revisionOf('user')
    const [token] = await store.find('tokens', 'tokenHash', tokenHash)
    if (!token) return undefined
    const now = clock.now()
    const lastUse = Date.parse(token.lastUsedAt)
    if (!isLive(token, now)) return undefined
    const owner = await store.get('users', token.userId)
    if (!owner?.enabled) return undefined
    const isNoted = now - lastUse > useGranularity
    if (isNoted) {
      await noted(async (tx) => {
        const current = await tx.get('tokens', token.id)
        if (current) tx.put('tokens', { ...current, lastUsedAt: isoTime(now) })
      })
    }
    if (isNoted && !(await store.get('tokens', token.id))) return undefined
    const expiresAt = Date.parse(token.expiresAt)
    const caller: Caller = {
      ...standing(token, owner),
      type: 'user',
      id: owner.id,
      tokenId: token.id,
      expiresAt,
      idleAt: token.kind === 'session' ? (isNoted ? now : lastUse) + sessionIdle : expiresAt,
    }
    return { caller, revision, until: Math.min(expiresAt, lastUse + useGranularity) }
  }

  async function agent(tokenHash: string): Promise<Known | undefined> {
    const revision = revisionOf('agent')
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
    // What was revoked while the note was written must not open a link.
    if (!(await store.find('hosts', 'agentToken', tokenHash))[0]) return undefined
    const caller: Caller = { type: 'agent', hostId: host.id, agentId: host.agent.agentId, tokenHash }
    // A first use that could not be noted yet is tried again at the next.
    return { caller, revision, until: host.agent.tokenUsed ? forever : 0 }
  }

  /** A token that is used up is known until it expires: its holder may repeat a registration whose answer was lost. */
  async function enrollment(tokenHash: string): Promise<Caller | undefined> {
    const [found] = await store.find('enrollments', 'tokenHash', tokenHash)
    if (!found || clock.now() >= Date.parse(found.expiresAt)) return undefined
    return { type: 'enrollment', id: found.id }
  }

  /** Only tokens that are good are remembered, so a flood of others pushes none of them out. */
  const known = new Map<string, Known>()
  async function remembered(token: string, looked: Promise<Known | undefined>): Promise<Caller | undefined> {
    const found = await looked
    known.delete(token)
    if (!found) return undefined
    const [oldest] = known.keys()
    if (known.size >= maxKnown && oldest !== undefined) known.delete(oldest)
    known.set(token, found)
    return found.caller
  }

  return (token) => {
    const found = known.get(token)
    if (
      found &&
      found.revision === revisionOf(found.caller.type) &&
      (found.until === forever || clock.now() < found.until)
    )
      return found.caller
    switch (kindOfToken(token)) {
      case 'session':
      case 'personal':
        return remembered(token, user(sha256(token)))
      case 'agent':
        return remembered(token, agent(sha256(token)))
      case 'enrollment':
        return enrollment(sha256(token))
      case null:
        return Promise.resolve(undefined)
    }
  }
}
