import { isDeepStrictEqual } from 'node:util'
import type { KnownHost } from '../../known-host.ts'
import type { Heard } from '../../ports/presence.ts'
import type { Database } from '../connection/database.ts'
import { encodeIds } from '../hints/lines.ts'
import { type Fleet, type Part, parts, patchOf, updateConnected, writeBatch } from './patches.ts'

/** News from agents of this server, and changes that are not written yet. */
export interface Local extends Heard {
  changed(hostId: number, of: readonly Part[]): void
  /** Parts that are not written yet and so are newer than any row. */
  unwritten(hostId: number): ReadonlySet<Part> | undefined
  /** Returns whether it wrote a changed host. */
  write(): Promise<boolean>
}

interface Pending {
  readonly changed: Map<number, Set<Part>>
  readonly heard: Set<number>
  readonly reported: Set<number>
  readonly removed: Set<number>
  readonly since: number
}

/** `soon`: called when a host changed. */
export function createLocal(fleet: Fleet, database: Database, soon: () => void): Local {
  const { hosts, links, remote, removed, neighbours } = fleet
  const { clock } = fleet.options
  const nothing = (): Pending => ({
    changed: new Map(),
    heard: new Set(),
    reported: new Set(),
    removed: new Set(),
    since: clock.now(),
  })
  let pending = nothing()

  function changed(hostId: number, of: readonly Part[]): void {
    if (removed.has(hostId)) return
    pending.changed.set(hostId, new Set([...(pending.changed.get(hostId) ?? []), ...of]))
    soon()
  }

  function batchOf({ changed, heard, reported, removed, since }: Pending) {
    return {
      server: neighbours.own() ?? 0,
      patches: [...changed].flatMap(([hostId, of]) => {
        const patch = patchOf(fleet, hostId, of)
        return patch ? [{ hostId, patch }] : []
      }),
      heard: encodeIds(heard),
      heardSince: since,
      reports: [...reported].flatMap((hostId) => {
        const { metrics, metricsAt: at } = hosts.entries.get(hostId) ?? {}
        return metrics && at !== undefined ? [{ hostId, at, metrics: JSON.stringify(metrics) }] : []
      }),
      removed: [...removed],
    }
  }

  return {
    changed,
    unwritten: (hostId) => pending.changed.get(hostId),
    async write() {
      const batch = pending
      pending = nothing()
      if ([batch.changed, batch.heard, batch.reported, batch.removed].every(({ size }) => size === 0))
        return false
      try {
        await writeBatch(database, batchOf(batch))
        return batch.changed.size > 0
      } catch (error) {
        for (const [hostId, of] of batch.changed) changed(hostId, [...of])
        // A later list would give all of these hosts the same time.
        for (const hostId of batch.heard) changed(hostId, ['beat'])
        for (const hostId of batch.reported) pending.reported.add(hostId)
        for (const hostId of batch.removed) pending.removed.add(hostId)
        throw error
      }
    },
    heartbeat(hostId, beat) {
      const before = { ...hosts.entry(hostId), offset: hosts.entry(hostId).clock.offsetSeconds() }
      hosts.heartbeat(hostId, beat)
      remote.delete(hostId)
      if (hasNews(before, hosts.entry(hostId))) changed(hostId, ['beat'])
      else pending.heard.add(hostId)
    },
    metrics(hostId, metrics) {
      const before = loadNames(hosts.entry(hostId))
      hosts.metrics(hostId, metrics)
      pending.reported.add(hostId)
      if (!isDeepStrictEqual(before, loadNames(hosts.entry(hostId)))) changed(hostId, ['load'])
    },
    registered(hostId) {
      // Keep a greeting: another server may get the HELLO of the new agent before it reads the registration.
      const hasGreeted = hosts.entry(hostId).greeting !== null
      hosts.registered(hostId)
      const link = links.get(hostId)
      if (link && !link.isUp) links.set(hostId, { ...link, lostAt: null, fault: null })
      updateConnected(fleet, hostId)
      remote.delete(hostId)
      changed(hostId, hasGreeted ? parts : parts.filter((part) => part !== 'greeting'))
    },
    connected(hostId, connected, linkFault, claim) {
      const known = connected ? hosts.entry(hostId) : hosts.entries.get(hostId)
      const previous = links.get(hostId)?.epoch ?? 0
      const epoch = claim?.epoch ?? previous
      if (known && epoch < previous) return
      hosts.connected(hostId, connected, linkFault)
      if (!known) return
      links.set(hostId, {
        epoch,
        server: neighbours.own() ?? 0,
        isUp: connected,
        lostAt: connected ? null : known.linkLostAt,
        fault: known.says.linkFault ?? null,
      })
      changed(hostId, ['link'])
    },
    greeted(hostId, greeting) {
      hosts.greeted(hostId, greeting)
      changed(hostId, ['greeting'])
    },
    duplicate(hostId, duplicate) {
      hosts.duplicate(hostId, duplicate)
      changed(hostId, ['marks'])
    },
    revoked(hostId) {
      hosts.revoked(hostId)
      changed(hostId, ['marks'])
    },
    forget(hostId) {
      hosts.forget(hostId)
      links.delete(hostId)
      remote.delete(hostId)
      pending.changed.delete(hostId)
      pending.heard.delete(hostId)
      pending.reported.delete(hostId)
      pending.removed.add(hostId)
      removed.set(hostId, true)
    },
  }
}

/** Names of measures, because changed values alone are not news. */
const loadNames = ({ load, high }: KnownHost) => ({
  warns: load.warns,
  rising: Object.keys(load.highSince),
  high: high.map(({ name }) => name),
})

/** Seconds by which a heartbeat may differ from the expected values without being news. */
const tolerance = { uptime: 5, clockOffset: 1 }

/** Whether a heartbeat reports more than that the host is alive; `before` is the previous state. */
function hasNews(before: KnownHost & { offset: number | null }, known: KnownHost): boolean {
  if (before.agentStatus !== known.agentStatus || !before.heardSinceStart) return true
  if (!isDeepStrictEqual(before.says, known.says)) return true
  const passed = ((known.lastHeartbeatAt ?? 0) - (before.lastHeartbeatAt ?? 0)) / 1000
  const expected = before.uptime === null ? null : before.uptime + passed
  if (isApart(expected, known.uptime, tolerance.uptime)) return true
  return isApart(before.offset, known.clock.offsetSeconds(), tolerance.clockOffset)
}

const isApart = (one: number | null, other: number | null, by: number): boolean =>
  one === null || other === null ? one !== other : Math.abs(one - other) > by
