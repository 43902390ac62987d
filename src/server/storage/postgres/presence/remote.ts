import { isDeepStrictEqual } from 'node:util'
import { silentIntervals } from '../../../../core/hosts/host-status.ts'
import { isoTime } from '../../../../disk/clock.ts'
import { isHealthy, type KnownHost, noteReach } from '../../known-host.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Local } from './local.ts'
import {
  type Fleet,
  type HostPatch,
  type HostRow,
  type LinkState,
  type Part,
  updateConnected,
} from './patches.ts'

/** Applies rows of other servers. */
export interface Remote {
  /** Whether a change comes from a row, and so need not be written. */
  readonly isTaking: boolean
  row(row: Pick<HostRow, 'hostId' | 'patch'>): void
  /** Hosts that another server heard after `at`, in milliseconds since 1970. */
  heard(hostIds: readonly number[], at: number): void
  /** Called once rows from before the start are read. `listeningSince`: start of the oldest live server; null if none. */
  begin(listeningSince: number | null): void
  close(): void
}

export function createRemote(
  fleet: Fleet,
  hints: Pick<Hints, 'publish' | 'subscribe'>,
  local: Pick<Local, 'unwritten' | 'forget'>,
): Remote {
  const { hosts, links, remote, removed, neighbours } = fleet
  const { clock, heartbeatInterval } = fleet.options
  let isStarting = true
  let isTaking = false

  function taking(work: () => void): void {
    isTaking = true
    try {
      work()
    } finally {
      isTaking = false
    }
  }

  function judge(hostId: number, isNews: boolean): void {
    if (isStarting) return
    hosts.judge(hostId)
    if (isNews) hints.publish('host', { id: hostId, change: 'updated' })
  }

  /** False if a newer heartbeat is known. */
  function noteHeard(hostId: number, known: KnownHost, at: number): boolean {
    if (at <= (known.lastHeartbeatAt ?? Number.NEGATIVE_INFINITY)) return false
    known.lastHeartbeatAt = at
    remote.add(hostId)
    if (isStarting) return true
    const heardAt = clock.monotonic() - Math.max(0, clock.now() - at)
    known.heardAt = Math.max(known.heardAt ?? Number.NEGATIVE_INFINITY, heardAt)
    known.heardSinceStart = true
    return true
  }

  function takeBeat(hostId: number, known: KnownHost, beat: HostPatch['beat']): void {
    const { at, agentStatus, uptime, says, clockOffset } = beat
    if (at !== null && !noteHeard(hostId, known, at)) return
    if (isStarting) known.heardAt = clock.monotonic()
    Object.assign(known, { agentStatus, uptime, says })
    if (at === null) return
    // Note it twice, because the clock compares the last two heartbeats.
    const hostTime = clockOffset === null ? undefined : isoTime(at + clockOffset * 1000)
    for (let beats = 0; beats < 2; beats++) known.clock.note(hostTime, at)
  }

  function takeLoad(known: KnownHost, { at, warns, high, highSince }: HostPatch['load']): void {
    if ((at ?? Number.NEGATIVE_INFINITY) < known.metricsAt) return
    const offset = clock.now() - clock.monotonic()
    const since = Object.entries(highSince).map(([name, time]) => [name, time - offset])
    known.load = { warns, highSince: Object.fromEntries(since) }
    known.high = high
  }

  function take(hostId: number, { beat, link, load, marks, greeting, standing }: Partial<HostPatch>): void {
    const known = hosts.entry(hostId)
    const before = { greeting: known.greeting, fault: known.says.linkFault ?? null }
    if (isStarting && standing) Object.assign(known, standing)
    if (beat) takeBeat(hostId, known, beat)
    if (load) takeLoad(known, load)
    if (marks) Object.assign(known, marks)
    if (greeting !== undefined && !isDeepStrictEqual(greeting, known.greeting)) known.greeting = greeting
    const isMoved = link !== undefined && isNewest(hostId, link) && takeLink(hostId, known, link)
    judge(
      hostId,
      isMoved || before.greeting !== known.greeting || before.fault !== (known.says.linkFault ?? null),
    )
  }

  /** Whether a link is newer than the known one; this server knows its own links best. */
  function isNewest(hostId: number, { epoch }: LinkState): boolean {
    const current = links.get(hostId)
    if (current === undefined || epoch > current.epoch) return true
    return epoch === current.epoch && !(current.isUp && current.server === neighbours.own())
  }

  function takeLink(hostId: number, known: KnownHost, link: LinkState): boolean {
    links.set(hostId, link)
    // A heartbeat after the end of the link reports the fault itself.
    if ((link.lostAt ?? Number.POSITIVE_INFINITY) >= (known.lastHeartbeatAt ?? 0))
      known.says = { ...known.says, linkFault: link.fault }
    return updateConnected(fleet, hostId)
  }

  function noteBeat(hostId: number, at: number): void {
    const known = hosts.entries.get(hostId)
    if (!known || known.agentStatus === null) return
    const wasHealthy = isHealthy(known)
    const last = known.lastHeartbeatAt
    if (!noteHeard(hostId, known, at)) return
    if (last !== null && known.uptime !== null) known.uptime += (at - last) / 1000
    if (!wasHealthy || known.agentStatus !== 'HEALTHY' || !known.connected) judge(hostId, false)
  }

  let others = neighbours.others()
  const ends = [
    neighbours.changed(() => {
      taking(() => {
        for (const hostId of links.keys()) if (updateConnected(fleet, hostId)) judge(hostId, true)
      })
      const previous = others
      others = neighbours.others()
      if ([...previous].some((epoch) => !others.has(epoch))) hosts.awaitReturn()
    }),
    hints.subscribe('host', null, ({ id, change }) => {
      // Each server deletes the rows of the host, because its own last write may follow the delete of another server.
      if (change === 'removed') taking(() => local.forget(id))
    }),
  ]

  return {
    get isTaking() {
      return isTaking
    },
    row({ hostId, patch }) {
      if (removed.has(hostId)) return
      const newer = local.unwritten(hostId)
      const taken = newer ? Object.entries(patch).filter(([part]) => !newer.has(part as Part)) : null
      taking(() => take(hostId, taken ? Object.fromEntries(taken) : patch))
    },
    heard(hostIds, at) {
      taking(() => hostIds.forEach((hostId) => noteBeat(hostId, at)))
    },
    begin(listeningSince) {
      isStarting = false
      const now = clock.now()
      for (const known of hosts.entries.values()) {
        known.linkLostAt ??= now
        const { heardAt, lastHeartbeatAt, status } = known
        if (heardAt !== null && lastHeartbeatAt !== null && listeningSince !== null) {
          // Count silence while another server listened, unless the store may have been unreachable.
          const silentFor = now - Math.max(lastHeartbeatAt, listeningSince)
          const isCounted = status === 'OFFLINE' || silentFor < silentIntervals * heartbeatInterval * 1000
          if (isCounted) known.heardAt = heardAt - Math.max(0, silentFor)
          known.heardSinceStart = isCounted && lastHeartbeatAt >= listeningSince
        }
        noteReach(known, clock, heartbeatInterval)
      }
    },
    close() {
      for (const end of ends) end()
    },
  }
}
