import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { createHints } from '../../../../src/server/embedded/hints.ts'
import { createPresence } from '../../../../src/server/embedded/presence/memory-presence.ts'
import { createLog } from '../../../../src/server/log.ts'
import type { RunningScripts } from '../../../../src/server/seams/presence.ts'
import { metrics } from '../../../helpers/metrics/metrics.ts'
import { until } from '../../../helpers/until.ts'

const begin = Date.parse('2026-03-02T09:30:00.000Z')
const running: RunningScripts = {
  runAs: 'deploy',
  runsAsRoot: false,
  sandbox: 'none',
  containment: 'cgroup',
}

interface Options {
  warnAfter?: number
  heartbeatInterval?: number
}

/** A presence by a clock that the test moves on top of the real one; `again` opens another one on its file. */
async function started(t: ExecutionContext, options: Options = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-reach-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  let passed = 0
  const clock = { now: () => begin + passed, monotonic: () => performance.now() + passed }
  const hints = createHints()
  const open = async () => {
    const place = { path: join(directory, 'presence.json'), hints, clock, log: createLog('ERROR') }
    const presence = await createPresence({ heartbeatInterval: 30, ...place, ...options })
    t.teardown(() => presence.close())
    return presence
  }
  const presence = await open()
  const view = async () => (await presence.views([1]))[0]
  const pass = (seconds: number) => {
    passed += seconds * 1000
  }
  return { presence, view, hints, pass, again: open }
}

test('A14 an agent that links on demand is reachable while it is heard within two intervals, and the end of that is told', async (t) => {
  const { presence, view, hints } = await started(t, { heartbeatInterval: 0.5 })
  presence.registered(1)
  presence.greeted(1, running)
  presence.connected(1, true)
  presence.connected(1, false)
  presence.heartbeat(1, { status: 'HEALTHY', onDemand: true })
  t.like(await view(), { status: 'ONLINE', reachable: true, statusReason: null })
  const { revision } = presence
  const told: unknown[] = []
  t.teardown(hints.subscribe('host', 1, () => void view().then((seen) => told.push(seen))))
  await until('it is told', () => told.length > 0)
  t.like(told[0], { status: 'ONLINE', reachable: false, statusReason: null })
  t.true(presence.revision > revision)
  presence.heartbeat(1, { status: 'HEALTHY', onDemand: true })
  t.like(await view(), { reachable: true })
})

test('A14 over a restart it is known who links on demand, who was stopped and since when', async (t) => {
  const { presence, pass, again } = await started(t)
  for (const hostId of [1, 2, 3]) {
    presence.registered(hostId)
    presence.greeted(hostId, running)
    presence.connected(hostId, true)
  }
  presence.heartbeat(1, { status: 'HEALTHY', onDemand: true })
  presence.connected(1, false)
  presence.connected(2, false, 'the agent was stopped at 2026-03-02T09:30:00.000Z')
  pass(5)
  await presence.close()
  pass(7)
  const after = await again()
  t.like(await after.views([1, 2, 3]), [
    { reachable: true, statusReason: null },
    { reachable: false, statusReason: 'no link for 12 s (the agent was stopped)' },
    { reachable: false, statusReason: 'no link for 0 s' },
  ])
})

test('A14 a start of the server is no sign of life: who was heard too long before it is not reachable until heard again', async (t) => {
  const { presence, pass, again } = await started(t)
  for (const hostId of [1, 2]) presence.registered(hostId)
  presence.greeted(1, running)
  presence.heartbeat(1, { status: 'HEALTHY', onDemand: true })
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
  late.heartbeat(1, { status: 'HEALTHY', onDemand: true })
  late.heartbeat(2, { status: 'HEALTHY' })
  t.deepEqual(await reached(late), [true, true])
})

test('A14 an agent that takes the place of another is not judged by how that one was linked', async (t) => {
  const { presence, view } = await started(t)
  presence.registered(1)
  presence.greeted(1, running)
  presence.connected(1, true)
  presence.connected(1, false)
  t.like(await view(), { reachable: false })
  presence.registered(1)
  t.like(await view(), { reachable: true, statusReason: null, running: null })
})

test('A14 a host that links is reachable though nothing was heard of it since a crash took what was known', async (t) => {
  const { presence, view } = await started(t)
  t.like(await view(), { status: 'OFFLINE', reachable: false })
  presence.connected(1, true)
  t.like(await view(), { status: 'OFFLINE', reachable: true })
})

test('A14 what warns says too that there is no link', async (t) => {
  const { presence, view, pass } = await started(t, { warnAfter: 120 })
  presence.registered(1)
  presence.greeted(1, running)
  presence.connected(1, true)
  const report = () => presence.metrics(1, metrics(new Date(begin).toISOString(), { cpu: 96 }))
  report()
  t.like(await view(), { status: 'ONLINE' })
  pass(120)
  presence.heartbeat(1, { status: 'HEALTHY' })
  report()
  t.like(await view(), { status: 'WARNING', statusReason: 'cpu 96 %', reachable: true })
  presence.connected(1, false)
  t.like(await view(), { status: 'WARNING', statusReason: 'cpu 96 %, no link for 0 s', reachable: false })
})
