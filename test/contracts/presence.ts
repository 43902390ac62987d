import type { ExecutionContext, TestFn } from 'ava'
import type { Clock } from '../../src/disk/clock.ts'
import type { Hints } from '../../src/server/storage/ports/hints.ts'
import type { Greeting, Presence } from '../../src/server/storage/ports/presence.ts'
import { metrics } from '../helpers/metrics/metrics.ts'
import { until } from '../helpers/until.ts'

const begin = Date.parse('2026-03-02T09:30:00.000Z')
const iso = (at: number) => new Date(at).toISOString()
const greeting: Greeting = {
  runAs: 'deploy',
  runsAsRoot: false,
  sandbox: 'none',
  containment: 'cgroup',
}

export interface PresenceOptions {
  clock: Clock
  /** Seconds. */
  heartbeatInterval: number
  warnAfter?: number
}

/** An open presence, its hints, and a way to open what it kept after it is closed. */
export interface OpenedPresence {
  presence: Presence
  hints: Hints
  again: () => Promise<Presence>
}

/** Suite for every implementation of Presence, with a clock that the test moves on top of the real one. */
export function presenceContract(
  test: TestFn,
  open: (t: ExecutionContext, options: PresenceOptions) => Promise<OpenedPresence>,
): void {
  async function started(t: ExecutionContext, options: Partial<PresenceOptions> = {}) {
    let passed = 0
    const clock = { now: () => begin + passed, monotonic: () => performance.now() + passed }
    const opened = await open(t, { clock, heartbeatInterval: 30, ...options })
    const view = async () => (await opened.presence.views([1]))[0]
    const pass = (seconds: number) => {
      passed += seconds * 1000
    }
    return { ...opened, view, pass }
  }

  test('reports of a host are shown, and a host that never reported is shown as such', async (t) => {
    const { presence } = await started(t)
    presence.registered(1)
    presence.greeted(1, greeting)
    presence.connected(1, true)
    presence.heartbeat(1, {
      status: 'DEGRADED',
      uptime: 77.5,
      says: { statusReason: 'no room' },
      timestamp: iso(begin + 3000),
    })
    const report = metrics(iso(begin), { disks: { '/': 40, '/ä': 97.5 } })
    presence.metrics(1, report)
    const [stranger, shown] = await presence.views([2, 1])
    t.like(stranger, { status: 'OFFLINE', statusReason: 'never heard', reachable: false, metrics: null })
    t.deepEqual(shown, {
      status: 'WARNING',
      statusReason: 'the agent reports DEGRADED: no room, disk /ä 97 %',
      reachable: true,
      noLink: false,
      agentStatus: 'DEGRADED',
      uptime: 77.5,
      lastHeartbeatAt: iso(begin),
      connected: true,
      linkLostAt: null,
      metrics: report,
      greeting,
      says: { statusReason: 'no room', linkFault: null },
      clockOffsetSeconds: 3,
    })
    t.deepEqual(await presence.standings([2, 1]), [
      { status: 'OFFLINE', reachable: false, noLink: false },
      { status: 'WARNING', reachable: true, noLink: false },
    ])
  })

  test('an older report that arrives late does not replace a newer one', async (t) => {
    const { presence, view } = await started(t)
    presence.registered(1)
    for (const [ago, cpu] of [
      [60, 1],
      [0, 2],
      [120, 3],
    ] as const)
      presence.metrics(1, metrics(iso(begin - ago * 1000), { cpu }))
    t.is((await view())?.metrics?.cpu.usagePercent, 2)
  })

  test('the revision rises when a standing changes, and not otherwise', async (t) => {
    const { presence } = await started(t)
    presence.registered(1)
    let last = presence.revision
    const rises = () => {
      const before = last
      last = presence.revision
      return last > before
    }
    presence.heartbeat(1, { status: 'HEALTHY', uptime: 1 })
    presence.metrics(1, metrics(iso(begin)))
    t.false(rises())
    presence.heartbeat(1, { status: 'UNHEALTHY' })
    t.true(rises())
    presence.revoked(1)
    t.true(rises())
    t.deepEqual(await presence.standings([1]), [{ status: 'OFFLINE', reachable: false, noLink: false }])
    presence.forget(1)
    t.true(rises())
    t.like((await presence.views([1]))[0], { statusReason: 'never heard', agentStatus: null })
  })

  test('A14 an on-demand agent is reachable for two heartbeat intervals, and the end of that is announced', async (t) => {
    const { presence, view, hints } = await started(t, { heartbeatInterval: 0.5 })
    presence.registered(1)
    presence.greeted(1, greeting)
    presence.connected(1, true)
    presence.connected(1, false)
    presence.heartbeat(1, { status: 'HEALTHY', says: { onDemand: true } })
    t.like(await view(), { status: 'ONLINE', reachable: true, statusReason: null })
    const { revision } = presence
    const told: unknown[] = []
    t.teardown(hints.subscribe('host', 1, () => void view().then((seen) => told.push(seen))))
    await until('its end is announced', () => told.length > 0)
    t.like(told[0], { status: 'ONLINE', reachable: false, statusReason: null })
    t.true(presence.revision > revision)
    presence.heartbeat(1, { status: 'HEALTHY', says: { onDemand: true } })
    t.like(await view(), { reachable: true })
  })

  test('A14 a restart keeps which agents link on demand, which were stopped, and since when', async (t) => {
    const { presence, pass, again } = await started(t)
    for (const hostId of [1, 2, 3]) {
      presence.registered(hostId)
      presence.greeted(hostId, greeting)
      presence.connected(hostId, true)
    }
    presence.heartbeat(1, { status: 'HEALTHY', says: { onDemand: true } })
    presence.connected(1, false)
    presence.connected(2, false, 'the agent was stopped at 2026-03-02T09:30:00.000Z')
    pass(5)
    await presence.close()
    pass(7)
    const after = await again()
    t.like(await after.views([1, 2, 3]), [
      { reachable: true, statusReason: null },
      { reachable: false, statusReason: 'its agent was stopped 12 s ago' },
      { reachable: false, statusReason: 'no link for 0 s' },
    ])
  })

  test('A14 a start of the server is not a sign of life: a host last heard too long ago stays unreachable', async (t) => {
    const { presence, pass, again } = await started(t)
    for (const hostId of [1, 2]) presence.registered(hostId)
    presence.greeted(1, greeting)
    presence.heartbeat(1, { status: 'HEALTHY', says: { onDemand: true } })
    await presence.close()
    pass(50)
    const soon = await again()
    const reached = async (of: typeof presence) => (await of.views([1, 2])).map(({ reachable }) => reachable)
    t.deepEqual(await reached(soon), [true, true])
    pass(11)
    await until('neither is reachable', async () => !(await reached(soon)).includes(true), 10_000)
    await soon.close()
    const late = await again()
    t.like(await late.views([1, 2]), [
      { status: 'ONLINE', reachable: false },
      { status: 'ONLINE', reachable: false },
    ])
    late.heartbeat(1, { status: 'HEALTHY', says: { onDemand: true } })
    late.heartbeat(2, { status: 'HEALTHY' })
    t.deepEqual(await reached(late), [true, true])
  })

  test('A14 an agent that replaces another is not judged by the links of the previous one', async (t) => {
    const { presence, view } = await started(t)
    presence.registered(1)
    presence.greeted(1, greeting)
    presence.connected(1, true)
    presence.connected(1, false)
    t.like(await view(), { reachable: false })
    presence.registered(1)
    t.like(await view(), { reachable: true, statusReason: null, greeting: null })
  })

  test('A14 a host that links is reachable, even if a crash lost everything known about it', async (t) => {
    const { presence, view } = await started(t)
    t.like(await view(), { status: 'OFFLINE', reachable: false })
    presence.connected(1, true)
    t.like(await view(), { status: 'OFFLINE', reachable: true })
  })

  test('A14 the reason of a warning also names a missing link', async (t) => {
    const { presence, view, pass } = await started(t, { warnAfter: 120 })
    presence.registered(1)
    presence.greeted(1, greeting)
    presence.connected(1, true)
    const report = () => presence.metrics(1, metrics(new Date(begin).toISOString(), { cpu: 96 }))
    report()
    t.like(await view(), { status: 'ONLINE' })
    pass(120)
    presence.heartbeat(1, { status: 'HEALTHY' })
    report()
    t.like(await view(), { status: 'WARNING', statusReason: 'cpu 96 %', reachable: true })
    presence.connected(1, false)
    t.like(await view(), { status: 'WARNING', statusReason: 'no link for 0 s, cpu 96 %', reachable: false })
  })

  test('a host has no link from the moment its agent loses it until it is back, even across a restart', async (t) => {
    const { presence, pass, again } = await started(t)
    for (const hostId of [1, 2, 3]) presence.registered(hostId)
    for (const hostId of [1, 2]) {
      presence.greeted(hostId, greeting)
      presence.connected(hostId, true)
    }
    presence.heartbeat(2, { status: 'HEALTHY', says: { onDemand: true } })
    const { revision } = presence
    for (const hostId of [1, 2]) presence.connected(hostId, false)
    t.true(presence.revision > revision)
    const shown = async (of: typeof presence) => (await of.standings([1, 2, 3])).map(({ noLink }) => noLink)
    t.deepEqual(await shown(presence), [true, false, false])
    t.true(presence.isReturning)
    await presence.close()
    const after = await again()
    t.deepEqual(await shown(after), [true, false, false])
    t.is((await after.views([3]))[0]?.linkLostAt, null)
    after.connected(1, true)
    t.deepEqual(await shown(after), [false, false, false])
    after.connected(1, false, 'the agent was stopped at 2026-03-02T09:30:00.000Z')
    t.deepEqual(await shown(after), [true, false, false])
    t.true(after.isReturning)
    pass(90)
    t.false(after.isReturning)
    await until('the server notices that it stalled', () => after.isReturning, 10_000)
  })
}
