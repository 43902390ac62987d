import { isDeepStrictEqual } from 'node:util'
import type { Heard } from '../../ports/presence.ts'
import type { KnownHost } from '../../presence/known-host.ts'
import type { Feed } from './feed.ts'
import type { Fleet } from './fleet.ts'
import type { Keeper } from './keeper.ts'
import { beatMarks, type Part, parts, tellsMore } from './signs.ts'

/** What of reports other servers judge by. */
const loadMarks = ({ load, high }: KnownHost) => ({
  warns: load.warns,
  rising: Object.keys(load.highSince),
  high: high.map(({ name }) => name),
})

/** What agents bring to this server: it becomes known here, and others are told as much of it as is news. */
export function createHere(
  fleet: Fleet,
  feed: Pick<Feed, 'heard' | 'changed' | 'gone'>,
  keeper: Pick<Keeper, 'heard' | 'changed' | 'reported' | 'gone'>,
): Heard {
  const { hosts, links, elsewhere, changedAt, neighbours } = fleet
  const { clock } = fleet.options

  function tell(hostId: number, of: readonly Part[]): void {
    if (of.length === 0) return
    changedAt.set(hostId, clock.now())
    feed.changed(hostId, of)
    keeper.changed(hostId)
  }

  function noteHeard(hostId: number): void {
    elsewhere.delete(hostId)
    feed.heard(hostId)
    keeper.heard(hostId)
  }

  return {
    heartbeat(hostId, beat) {
      const before = beatMarks(hosts.entry(hostId))
      hosts.heartbeat(hostId, beat)
      noteHeard(hostId)
      if (tellsMore(before, hosts.entry(hostId))) tell(hostId, ['beat'])
    },
    metrics(hostId, metrics) {
      const before = loadMarks(hosts.entry(hostId))
      hosts.metrics(hostId, metrics)
      keeper.reported(hostId)
      if (!isDeepStrictEqual(before, loadMarks(hosts.entry(hostId)))) tell(hostId, ['load'])
    },
    registered(hostId) {
      // The HELLO of a new agent may reach another server before this is told there: then it must not be taken back.
      const hasGreeted = hosts.entry(hostId).greeting !== null
      hosts.registered(hostId)
      const link = links.get(hostId)
      if (link && !link.isUp) links.take(hostId, { ...link, lostAt: null })
      noteHeard(hostId)
      tell(hostId, hasGreeted ? parts : parts.filter((part) => part !== 'greeting'))
    },
    connected(hostId, connected, linkFault, claim) {
      const known = connected ? hosts.entry(hostId) : hosts.entries.get(hostId)
      const epoch = claim?.epoch ?? links.get(hostId)?.epoch ?? 0
      const sign = { epoch, server: neighbours.own() ?? 0, isUp: connected, lostAt: null }
      if (known && !links.take(hostId, sign)) return
      hosts.connected(hostId, connected, linkFault)
      if (!known) return
      if (!connected) links.take(hostId, { ...sign, lostAt: known.linkLostAt })
      tell(hostId, connected || linkFault !== undefined ? ['link', 'beat'] : ['link'])
    },
    greeted(hostId, greeting) {
      const before = hosts.entry(hostId).greeting
      hosts.greeted(hostId, greeting)
      tell(hostId, before === hosts.entry(hostId).greeting ? [] : ['greeting'])
    },
    duplicate(hostId, duplicate) {
      const isNew = hosts.entry(hostId).duplicate !== duplicate
      hosts.duplicate(hostId, duplicate)
      tell(hostId, isNew ? ['marks'] : [])
    },
    revoked(hostId) {
      const isNew = !hosts.entry(hostId).revoked
      hosts.revoked(hostId)
      tell(hostId, isNew ? ['marks'] : [])
    },
    forget(hostId) {
      hosts.forget(hostId)
      links.forget(hostId)
      elsewhere.delete(hostId)
      changedAt.delete(hostId)
      feed.gone(hostId)
      keeper.gone(hostId)
    },
  }
}
