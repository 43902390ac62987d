import { silentIntervals } from '../../../../core/hosts/host-status.ts'
import type { Hints } from '../../ports/hints.ts'
import { isHealthy, type KnownHost } from '../../presence/known-host.ts'
import type { FeedListener } from './feed.ts'
import { connectAnew, type Fleet, reachAsKept } from './fleet.ts'
import type { KeeperListener } from './keeper.ts'
import { type Signs, takeSigns } from './signs.ts'
import { type KeptHost, type LinkRow, writtenWithin } from './table.ts'

export interface Elsewhere extends FeedListener, KeeperListener {
  /** What was kept before this server started is read: from now on hosts are judged. */
  begun(): void
  /** Whether what changes just now was told by another server, which keeps it. */
  readonly isTaking: boolean
  close(): void
}

/** What other servers have heard becomes known here. `unread`: hears that hosts have to be read from the table. */
export function createElsewhere(
  fleet: Fleet,
  hints: Pick<Hints, 'publish'>,
  { unread, changed }: { unread: () => void; changed: (hostId: number) => void },
): Elsewhere {
  const { hosts, links, elsewhere, changedAt, neighbours, listeningSince } = fleet
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
    // Rows read at the start count as signs of life if another server has listened since.
    if (isStarting && at < (listeningSince ?? Number.POSITIVE_INFINITY)) return true
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
    // rsm.links has the links, but not since when one is lost.
    known.linkLostAt = signs.link?.lostAt ?? clock.now()
    known.heardAt = clock.monotonic()
    // Silence counts while another server listens.
    if (signs.beat.at !== null && listeningSince !== null)
      known.heardAt -= Math.max(0, clock.now() - Math.max(signs.beat.at, listeningSince))
    if (signs.beat.at !== null) noteHeard(hostId, known, signs.beat.at)
    reachAsKept(fleet, hostId)
  }

  /** Takes a link from its row, unless a hint is newer: the row is written shortly after ready and close. */
  function takeRow({ hostId, epoch, server, isReady }: LinkRow): void {
    const told = links.get(hostId)
    const known = hosts.entry(hostId)
    const now = clock.now()
    if (told?.epoch === epoch) {
      if (told.server === neighbours.own()) return
      const isReleasing = (told.lostAt ?? 0) > now - writtenWithin
      if (isReady ? told.isUp || isReleasing : server !== null) return
    }
    const lostAt = isReady ? null : known.connected ? now : (known.linkLostAt ?? now)
    if (!links.take(hostId, { epoch, server: server ?? 0, isUp: isReady, lostAt })) return
    if (!connectAnew(fleet, hostId)) return
    judge(hostId)
    publish(hostId)
  }

  /** Gives a silent host three intervals unless another server found it OFFLINE: the store may have been away. */
  function forgive(known: KnownHost): void {
    const { heardAt, status } = known
    const now = clock.monotonic()
    if (heardAt === null || status === 'OFFLINE') return
    if (now - heardAt < silentIntervals * fleet.options.heartbeatInterval * 1000) return
    known.heardAt = now
    known.heardSinceStart = false
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
    for (const hostId of links.all().keys()) {
      if (!connectAnew(fleet, hostId)) continue
      hosts.judge(hostId)
      publish(hostId)
    }
  }
  let others = neighbours.others()
  /** Writes what a dead server may have published and not flushed. */
  function keepForGone(): void {
    const former = others
    others = neighbours.others()
    if ([...former].every((epoch) => others.has(epoch))) return
    hosts.awaitReturn()
    const since = clock.now() - writtenWithin
    for (const [hostId, at] of changedAt) if (at > since) changed(hostId)
  }
  const end = neighbours.changed(() => {
    taking(connectAll)
    keepForGone()
  })

  return {
    get isTaking() {
      return isTaking
    },
    begun() {
      isStarting = false
      for (const [hostId, known] of hosts.entries) {
        forgive(known)
        reachAsKept(fleet, hostId)
      }
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
        else take(hostId, { ...signs, link: null })
        judge(hostId)
      })
    },
    linked(rows) {
      taking(() => rows.forEach(takeRow))
    },
    close: end,
  }
}
