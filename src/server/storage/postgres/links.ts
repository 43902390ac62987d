import { type Clock, repeat } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import type { LinkClaim, Links } from '../ports/cluster.ts'
import type { Hints } from '../ports/hints.ts'
import { batched } from './connection/batched.ts'
import type { Database } from './connection/database.ts'
import { unavailable } from './connection/failure.ts'
import { claimAll, type Wanted } from './link-claims.ts'
import { isLiving } from './ownership/lives.ts'
import type { StoreOwnership } from './ownership/ownership.ts'

/** Milliseconds between two sweeps. */
const sweepEvery = 1_000
/** Milliseconds for which a refusal due to another server is cached: its holder may release the link. */
const refusalBelieved = 1_000
const maxAtOnce = 500

interface Parts {
  database: Database
  ownership: Pick<StoreOwnership, 'holdsLease'>
  hints: Hints
  clock: Pick<Clock, 'monotonic'>
  log: Log
}

interface Row {
  host_id: number
  agent_id: string
  server: string
  server_epoch: number
  epoch: number
  since: string
}

const claimOf = (row: Row): LinkClaim => ({
  hostId: row.host_id,
  agentId: row.agent_id,
  server: { name: row.server, epoch: row.server_epoch },
  epoch: row.epoch,
  since: row.since,
})

const holders = {
  name: 'links.holders',
  text: `select l.* from rsm.links l where l.host_id = any($1) and (l.ready or not $2)
    and ${isLiving('l', { epoch: 'server_epoch' })}`,
}

/** Claims that are still current, locked by host id to avoid deadlocks. */
const standing = `(select l.host_id from rsm.links l join unnest($1::bigint[], $2::bigint[]) c(host_id, epoch)
  on l.host_id = c.host_id and l.epoch = c.epoch order by l.host_id for update of l) standing
  where l.host_id = standing.host_id`
const ready = { name: 'links.ready', text: `update rsm.links l set ready = true from ${standing}` }
/** Keeps the epoch, because unsent executions may still be returned under it. */
const release = {
  name: 'links.release',
  text: `update rsm.links l set server = null, server_epoch = null, ready = false from ${standing}`,
}
const superseded = {
  name: 'links.superseded',
  text: `select l.host_id, l.epoch from rsm.links l, unnest($1::bigint[], $2::bigint[]) c(host_id, epoch)
    where l.host_id = c.host_id and l.epoch > c.epoch`,
}

/** Ends each refusal at one server only. */
const expire = {
  name: 'links.expire',
  text: `update rsm.links l set refused_until = null from (
      select host_id from rsm.links where refused_until is not null and refused_until <= rsm.now()
      order by host_id for update skip locked) over
    where l.host_id = over.host_id returning l.host_id`,
}

/** Claims as rows of rsm.links; hints and sweeps detect newer claims of other servers. */
export function createLinks({ database, ownership, hints, clock, log }: Parts): Links & { close(): void } {
  const ownClaims = new OwnClaims()
  /** Refusals by host, until a monotonic time; `byHolder`: only while this process holds the link. */
  const refused = new Map<number, { until: number; byHolder: boolean }>()
  const unreleased = new Set<LinkClaim>()
  const claiming = batched((wanted: readonly Wanted[]) => claimAll(database, wanted), maxAtOnce)
  const readying = batched((claims: readonly LinkClaim[]) => set(ready, claims), maxAtOnce)
  const releasing = batched((claims: readonly LinkClaim[]) => set(release, claims), maxAtOnce)

  async function set(statement: typeof ready, claims: readonly LinkClaim[]): Promise<undefined[]> {
    await database.ask('write', statement, byClaim(claims))
    return claims.map(() => undefined)
  }

  async function compare(claims: readonly LinkClaim[]): Promise<void> {
    if (claims.length === 0) return
    const rows = await database.ask<{ host_id: number; epoch: number }>('write', superseded, byClaim(claims))
    for (const { host_id, epoch } of rows) ownClaims.supersede(host_id, epoch)
  }

  /** Catches up on lost hints, and on releases that failed in a store outage. */
  async function sweep(): Promise<void> {
    const late = [...unreleased]
    if (late.length > 0) await set(release, late)
    for (const claim of late) unreleased.delete(claim)
    await compare(ownClaims.some())
    const now = clock.monotonic()
    for (const [hostId, { until }] of refused) if (until <= now) refused.delete(hostId)
  }

  const failed = (error: unknown) => log.debug({ err: error }, 'links could not be compared with the store')
  const sweeping = repeat(sweepEvery, sweep, failed)
  const ends = [
    hints.subscribe('link', null, ({ id, epoch }) => ownClaims.supersede(id, epoch)),
    hints.missed(() => void compare(ownClaims.all()).catch(failed)),
  ]

  function noteRefusal(hostId: number, refusedFor: number): void {
    const isOwn = ownClaims.get(hostId) !== undefined
    const time = isOwn ? refusedFor : Math.min(refusedFor, refusalBelieved)
    if (time > 0) refused.set(hostId, { until: clock.monotonic() + time, byHolder: isOwn })
    else refused.delete(hostId)
  }

  return {
    async claim(hostId, { server, agentId }, whenSuperseded) {
      if (!ownership.holdsLease(server)) throw unavailable(new Error('the lease of this server is over'))
      const answer = await claiming({ hostId, agentId, server })
      const { claim, isDuplicate, isReplacement, refusedFor, isMember } = answer
      if (!isMember) throw unavailable(new Error('another process has the name of this server'))
      if (claim) ownClaims.take(claim, whenSuperseded)
      noteRefusal(hostId, refusedFor)
      if (!claim) return null
      if (isReplacement) hints.publish('link', { id: hostId, epoch: claim.epoch })
      return { claim, isDuplicate }
    },
    async ready(claim) {
      await readying(claim)
    },
    async release(claim) {
      ownClaims.release(claim)
      unreleased.add(claim)
      await releasing(claim)
      unreleased.delete(claim)
    },
    async holder(hostId) {
      const [row] = await database.ask<Row>('write', holders, [[hostId], false])
      return row ? claimOf(row) : null
    },
    async holders(hostIds) {
      const rows = await database.ask<Row>('write', holders, [hostIds, true])
      return new Map(rows.map((row) => [row.host_id, claimOf(row)]))
    },
    refuses(hostId) {
      const its = refused.get(hostId)
      if (!its || its.until <= clock.monotonic()) return false
      return !its.byHolder || ownClaims.get(hostId) !== undefined
    },
    async expire() {
      const rows = await database.ask<{ host_id: number }>('write', expire)
      for (const { host_id } of rows) refused.delete(host_id)
      return rows.map(({ host_id }) => host_id)
    },
    close() {
      void sweeping.stop()
      for (const end of ends) end()
    },
  }
}

const byClaim = (claims: readonly LinkClaim[]) => [
  claims.map(({ hostId }) => hostId),
  claims.map(({ epoch }) => epoch),
]

/** Claims compared with the store per sweep. */
const comparedAtOnce = 2_000

interface OwnClaim {
  claim: LinkClaim
  superseded: () => void
}

/** Claims of links with sockets in this process. */
class OwnClaims {
  readonly #claims = new Map<number, OwnClaim>()
  #nextAt = 0

  get(hostId: number): LinkClaim | undefined {
    return this.#claims.get(hostId)?.claim
  }

  /** Adds a claim and notifies the older one of its host. */
  take(claim: LinkClaim, superseded: () => void): void {
    const previous = this.#claims.get(claim.hostId)
    if (previous && previous.claim.epoch > claim.epoch) return superseded()
    this.#claims.set(claim.hostId, { claim, superseded })
    previous?.superseded()
  }

  release({ hostId, epoch }: LinkClaim): void {
    if (this.get(hostId)?.epoch === epoch) this.#claims.delete(hostId)
  }

  /** Drops an own claim older than this epoch, and notifies it. */
  supersede(hostId: number, epoch: number): void {
    const own = this.#claims.get(hostId)
    if (!own || own.claim.epoch >= epoch) return
    this.#claims.delete(hostId)
    own.superseded()
  }

  all(): LinkClaim[] {
    return [...this.#claims.values()].map(({ claim }) => claim)
  }

  /** Next batch of claims, in rotation. */
  some(): LinkClaim[] {
    const all = this.all()
    if (this.#nextAt >= all.length) this.#nextAt = 0
    const batch = all.slice(this.#nextAt, this.#nextAt + comparedAtOnce)
    this.#nextAt += comparedAtOnce
    return batch
  }
}
