import { isHealthy, type KnownHost } from '../../presence/known-host.ts'
import type { Hints } from '../../seams/hints.ts'
import type { FeedListener } from './feed.ts'
import { connectAnew, type Fleet, reachAsKept } from './fleet.ts'
import type { KeeperListener } from './keeper.ts'
import { type Signs, takeSigns } from './signs.ts'
import type { KeptHost } from './table.ts'

export interface Elsewhere extends FeedListener, KeeperListener {
  /** What was kept before this server started is read: from now on hosts are judged. */
  begun(): void
  /** Whether what changes just now was told by another server, which keeps it. */
  readonly isTaking: boolean
  close(): void
}

/** What other servers have heard becomes known here. `unread`: hears that hosts have to be read from the table. */
export function createElsewhere(fleet: Fleet, hints: Pick<Hints, 'publish'>, unread: () => void): Elsewhere {
  const { hosts, links, elsewhere, changedAt, neighbours } = fleet
  const { clock } = fleet.options
  let isStarting = true
  let isTaking = false

  const publish = (hostId: number) => hints.publish('host', { id: hostId, change: 'updated' })
  const judge = (hostId: number) => {
    if (!isStarting) hosts.judge(hostId)
  }

  /** False where that is no news. */
  function noteHeard(hostId: number, known: KnownHost, at: number): boolean {
    if (at <= (known.lastHeartbeatAt ?? Number.NEGATIVE_INFINITY)) return false
    known.lastHeartbeatAt = at
    elsewhere.add(hostId)
    // What is read at the start of the only server is no sign of life.
    if (isStarting && neighbours.others().size === 0) return true
    const silentFor = Math.max(0, clock.now() - at)
    known.heardAt = Math.max(known.heardAt ?? Number.NEGATIVE_INFINITY, clock.monotonic() - silentFor)
    known.heardSinceStart = true
    return true
  }

  function take(hostId: number, signs: Partial<Signs>): void {
    const known = hosts.entry(hostId)
    const before = { fault: known.says.linkFault ?? null, greeting: known.greeting }
    takeSigns(known, signs, clock)
    if (signs.beat?.at != null) noteHeard(hostId, known, signs.beat.at)
    const isOtherLink = signs.link != null && links.take(hostId, signs.link) && connectAnew(fleet, hostId)
    judge(hostId)
    const isOther = isOtherLink || before.greeting !== known.greeting
    if (isOther || before.fault !== (known.says.linkFault ?? null)) publish(hostId)
  }

  /** False where nothing else is known of it. */
  function hear(hostId: number, at: number): boolean {
    const known = hosts.entries.get(hostId)
    if (!known || known.agentStatus === null) return false
    const wasHealthy = isHealthy(known)
    const last = known.lastHeartbeatAt
    if (!noteHeard(hostId, known, at)) return true
    if (last !== null && known.uptime !== null) known.uptime += (at - last) / 1000
    if (!wasHealthy || known.agentStatus !== 'HEALTHY' || !known.connected) judge(hostId)
    return true
  }

  /** Of a host that nobody has told of since this server started. */
  function takeUp({ hostId, status, reason, signs }: KeptHost): void {
    const known = hosts.entry(hostId)
    Object.assign(known, { status, reason })
    takeSigns(known, signs, clock)
    const { link } = signs
    known.connected = link !== null && link.isUp && neighbours.others().has(link.server)
    known.linkLostAt = known.connected ? null : (link?.lostAt ?? clock.now())
    if (link) links.take(hostId, { ...link, isUp: known.connected, lostAt: known.linkLostAt })
    known.heardAt = clock.monotonic()
    // Where others have listened all the time, silence since then is silence.
    if (signs.beat.at !== null && neighbours.others().size > 0)
      known.heardAt -= Math.max(0, clock.now() - signs.beat.at)
    if (signs.beat.at !== null) noteHeard(hostId, known, signs.beat.at)
    reachAsKept(fleet, hostId)
  }

  function taking(work: () => void): void {
    isTaking = true
    try {
      work()
    } finally {
      isTaking = false
    }
  }

  function connectAll(): void {
    for (const hostId of links.hosts()) {
      if (!connectAnew(fleet, hostId)) continue
      hosts.judge(hostId)
      publish(hostId)
    }
  }
  const end = neighbours.changed(() => taking(connectAll))

  return {
    get isTaking() {
      return isTaking
    },
    begun() {
      isStarting = false
      for (const hostId of hosts.entries.keys()) reachAsKept(fleet, hostId)
    },
    heard(hostIds, at) {
      const unknown: number[] = []
      taking(() => {
        for (const hostId of hostIds) if (!hear(hostId, at)) unknown.push(hostId)
      })
      if (unknown.length > 0 && !isStarting) unread()
    },
    told(hostId, signs) {
      changedAt.set(hostId, clock.now())
      taking(() => take(hostId, signs))
    },
    gone(hostIds) {
      taking(() => {
        for (const hostId of hostIds) {
          hosts.forget(hostId)
          links.forget(hostId)
          elsewhere.delete(hostId)
          changedAt.delete(hostId)
        }
      })
    },
    unread,
    kept(host) {
      const { hostId, at, signs } = host
      if (at <= (changedAt.get(hostId) ?? 0)) return
      changedAt.set(hostId, at)
      taking(() => {
        if (hosts.entries.get(hostId)?.heardAt == null) takeUp(host)
        else take(hostId, signs)
        judge(hostId)
      })
    },
    close: end,
  }
}
