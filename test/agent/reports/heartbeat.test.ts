import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { type Clock, systemClock } from '../../../src/agent/clock.ts'
import { startAgent } from '../../../src/agent/main.ts'
import { Heartbeat, type HeartbeatOptions } from '../../../src/agent/reports/heartbeat.ts'
import { MetricsBuffer } from '../../../src/agent/reports/metrics.ts'
import { RsmError } from '../../../src/core/errors.ts'
import type { Metrics } from '../../../src/core/hosts/host.ts'
import { longestReason } from '../../../src/core/protocol/bounds.ts'
import type { AgentConfig, HeartbeatRequest } from '../../../src/core/protocol/http/agent.ts'
import { agentOptions, hasty, linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { until } from '../../helpers/until.ts'

test('the first heartbeat carries status and agent id, and a reconnect keeps the host id', async (t) => {
  const { server, agent } = await linkedAgent(t)
  t.is(server.heartbeats[0]?.status, 'HEALTHY')
  t.is(server.heartbeats[0]?.agentId, agent.agentId)
  server.socket?.terminate()
  await server.linked(2)
  t.is(agent.hostId, 7)
})

test('a heartbeat says why there is no link: the response of the server or of its proxy', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  server.intervals = { heartbeatInterval: 1, metricsInterval: 60 }
  server.refusesLinks = 502
  const agent = await startAgent({ ...agentOptions(server, dataDir), clock: hasty })
  t.teardown(async () => {
    await agent.stop()
    await server.close()
  })
  const last = () => server.heartbeats.at(-1)
  await server.until(
    () => last()?.linkFault?.includes('answered') === true,
    'a heartbeat reports the link fault',
  )
  t.like(last(), { status: 'HEALTHY', onDemand: false, linkFault: 'the server answered 502' })
  t.false('reason' in (last() ?? {}))
})

test('metrics are measured, and percentages are between 0 and 100', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  server.intervals = { heartbeatInterval: 1, metricsInterval: 1 }
  const agent = await startAgent({ ...agentOptions(server, dataDir), clock: hasty })
  t.teardown(async () => {
    await agent.stop()
    await server.close()
  })
  await server.until(() => server.metrics.length >= 3 && server.heartbeats.length >= 3, 'three reports')
  for (const { cpu, memory, disk, network } of server.metrics) {
    for (const percent of [cpu.usagePercent, memory.usagePercent, ...disk.map((row) => row.usagePercent)])
      t.true(percent >= 0 && percent <= 100)
    t.true(memory.totalMB > 0 && memory.usedMB + memory.availableMB === memory.totalMB)
    t.true(disk.some((row) => row.mountPoint === '/' && row.totalGB > 0))
    t.true(network.rxBytesPerSec >= 0 && network.connections >= 0)
  }
})

const ack = { serverTime: '', configVersion: 1, pendingTasks: 0 }
const healthy: HeartbeatOptions['api'] = {
  register: () => Promise.reject(new Error('it is registered')),
  heartbeat: async () => ack,
  config: async () => ({ configVersion: 1 }) as AgentConfig,
  metrics: async () => ack,
}

async function heartbeatOf(t: ExecutionContext, parts: Partial<HeartbeatOptions>): Promise<Heartbeat> {
  const heartbeat = new Heartbeat({
    api: healthy,
    agentId: 'a',
    dataDir: await temporaryDirectory(t),
    clock: systemClock,
    random: Math.random,
    buffer: await MetricsBuffer.open(join(await temporaryDirectory(t), 'metrics.jsonl')),
    measure: async () => ({ timestamp: 'now' }) as Metrics,
    facts: async () => ({}),
    intervals: { heartbeatInterval: 60, metricsInterval: 60 },
    says: async () => ({}),
    mark: () => null,
    onMark: () => {},
    log: () => {},
    ...parts,
  })
  t.teardown(() => heartbeat.stop())
  return heartbeat
}

const deaf = { reached() {}, missed() {}, configured() {}, revoked: async () => false }

for (const [asked, taken] of [
  [0, 1],
  [-1, 1],
  [1e-9, 1],
  ['x', 1],
  [null, 1],
  [1e12, 86_400],
] as const)
  test(`an interval of ${asked} from the server becomes ${taken} s`, async (t) => {
    const delays = new Set<number>()
    const clock: Clock = {
      ...systemClock,
      monotonic: () => 0,
      after(delay) {
        delays.add(delay)
        return () => {}
      },
    }
    const config = { configVersion: 1, heartbeatInterval: asked, metricsInterval: asked }
    const api = { ...healthy, config: async () => config as unknown as AgentConfig }
    const heartbeat = await heartbeatOf(t, { api, clock })
    heartbeat.start(deaf)
    await until('it is configured', () => delays.has(taken * 1000) && delays.size === 2)
    t.deepEqual([...delays], [60_000, taken * 1000])
  })

test('a heartbeat omits facts that are null, and cuts text to one line that the server accepts', async (t) => {
  let sent: HeartbeatRequest | undefined
  const heartbeat = await heartbeatOf(t, {
    api: {
      ...healthy,
      async heartbeat(request) {
        sent = request
        return ack
      },
    },
    says: async () => ({ onDemand: null, linkFault: `one\r\ntwo ${'x'.repeat(longestReason)}` }),
  })
  t.true(await heartbeat.hearServerTime())
  t.false('onDemand' in (sent ?? {}))
  t.regex(sent?.linkFault ?? '', /^one two x+…?$/)
  t.true((sent?.linkFault ?? '').length <= longestReason)
})

test('facts are sent with the second heartbeat, the one after a new link, and once an hour', async (t) => {
  const beats: boolean[] = []
  let now = 0
  let next: (() => void) | null = null
  let gathered = 0
  const clock: Clock = {
    ...systemClock,
    monotonic: () => now,
    after(delay, run) {
      if (delay === 30_000) next = run
      return () => {}
    },
  }
  const intervals = { heartbeatInterval: 30, metricsInterval: 60 }
  const heartbeat = await heartbeatOf(t, {
    api: {
      ...healthy,
      config: async () => ({ configVersion: 1, ...intervals }) as AgentConfig,
      async heartbeat({ facts }) {
        beats.push(facts !== undefined)
        return ack
      },
    },
    clock,
    facts: async () => ({ cpuCores: ++gathered }),
    intervals,
  })
  const beat = async () => {
    const run = next
    next = null
    run?.()
    await until('the next heartbeat is scheduled', () => next !== null)
  }
  heartbeat.start(deaf)
  await until('the next heartbeat is scheduled', () => next !== null)
  for (let count = 0; count < 3; count += 1) await beat()
  t.deepEqual(beats, [false, true, false, false])
  next = null
  heartbeat.beatNow()
  await until('an extra heartbeat is sent', () => next !== null)
  await beat()
  now = 3_600_000
  for (let count = 0; count < 3; count += 1) await beat()
  t.deepEqual(beats.slice(4), [false, true, false, true, false])
  t.is(gathered, 3)
})

test('an agent sends the facts of its host after its start, and again after each link', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  server.intervals = { heartbeatInterval: 1, metricsInterval: 60 }
  const agent = await startAgent({ ...agentOptions(server, dataDir), clock: hasty })
  t.teardown(async () => {
    await agent.stop()
    await server.close()
  })
  const told = () => server.heartbeats.flatMap(({ facts = null }) => (facts === null ? [] : [facts]))
  await server.until(() => told().length === 1, 'facts after the start')
  server.socket?.terminate()
  await server.linked(2)
  await server.until(() => told().length === 2, 'facts after the link')
  t.like(told()[1], { os: 'linux', diskGB: 100 })
})

test('no other measurement begins while a disk does not answer', async (t) => {
  const intervals = { heartbeatInterval: 60, metricsInterval: 1 }
  const sent: string[] = []
  const asked: ((sample: Metrics) => void)[] = []
  let intervalsOver = 0
  const clock: Clock = {
    ...systemClock,
    after: (delay, run) =>
      systemClock.after(delay / 100, () => {
        if (delay === intervals.metricsInterval * 1000) intervalsOver += 1
        run()
      }),
  }
  const heartbeat = await heartbeatOf(t, {
    api: {
      ...healthy,
      config: async () => ({ configVersion: 1, ...intervals }) as AgentConfig,
      async metrics({ timestamp }) {
        sent.push(timestamp)
        return ack
      },
    },
    clock,
    measure: () => new Promise((resolve) => asked.push(resolve)),
    intervals,
  })
  heartbeat.start(deaf)
  await until('ten intervals are over', () => intervalsOver > 10)
  t.is(asked.length, 1)
  asked[0]?.({ timestamp: 'first' } as Metrics)
  await until('it is sent, and the next measurement begins', () => asked.length > 1 && sent.length > 0)
  t.deepEqual(sent, ['first'])
})

test('metrics measured while the server is unavailable are kept on disk and sent in order', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  server.intervals = { heartbeatInterval: 1, metricsInterval: 1 }
  let isAway = false
  server.intercept = () => (isAway ? { status: 503, message: 'away' } : undefined)
  const first = await startAgent({ ...agentOptions(server, dataDir), clock: hasty })
  await server.until(() => server.metrics.length >= 1, 'a report')
  isAway = true
  const buffered = () => {
    const lines = readFileSync(join(dataDir, 'metrics.jsonl'), 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => (JSON.parse(line) as Metrics).timestamp)
  }
  await until('four are kept', () => existsSync(join(dataDir, 'metrics.jsonl')) && buffered().length >= 4)
  await first.stop()
  const kept = buffered()
  t.true(kept.length >= 4)
  isAway = false
  const before = server.metrics.length
  const second = await startAgent({ ...agentOptions(server, dataDir), clock: hasty })
  t.teardown(async () => {
    await second.stop()
    await server.close()
  })
  await server.until(() => server.metrics.length >= before + kept.length, 'the buffer arrives')
  // Compared by order, because the server's time, as the agent estimates it, moves by milliseconds at each response.
  const came = server.metrics.slice(before, before + kept.length)
  t.deepEqual(
    came.map(({ timestamp }) => timestamp),
    kept,
  )
})

test('an agent repeats a registration whose response was lost, with the same id', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  const ids: unknown[] = []
  server.intercept = (path, body) => {
    if (path !== '/api/agent/register') return undefined
    ids.push((body as { agentId: string }).agentId)
    return ids.length === 1 ? 'drop' : undefined
  }
  const clock: Clock = {
    ...systemClock,
    after: (delay, run) => systemClock.after(delay > 2_000 && delay <= 5_000 ? 10 : delay, run),
  }
  const agent = await startAgent({ ...agentOptions(server, dataDir), clock })
  await agent.stop()
  await server.close()
  t.is(ids.length, 2)
  t.is(ids[0], ids[1])
})

for (const status of [401, 403, 409])
  test(`a registration that is refused with ${status} fails with the server's message`, async (t) => {
    const dataDir = await temporaryDirectory(t)
    const server = await FakeServer.start()
    t.teardown(() => server.close())
    server.intercept = () => ({ status, message: `no, because ${status}` })
    const error = await t.throwsAsync(startAgent(agentOptions(server, dataDir)), { instanceOf: RsmError })
    const what = status === 409 ? '' : 'the server refused to register this host: '
    t.is(error?.message, `${what}no, because ${status}`)
  })

test('an error whose message contains the remedy has no hint', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const message = 'This enrollment token is used up; make a new one: rsm hosts join'
  server.intercept = () => ({ status: 401, message })
  const error = await t.throwsAsync(startAgent(agentOptions(server, dataDir)), { instanceOf: RsmError })
  t.is(error?.message, `the server refused to register this host: ${message}`)
  t.is(error?.hint, undefined)
})

test('an agent without identity and token fails, and its hint says how to get a token', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const { enrollToken: _, ...options } = agentOptions(server, dataDir)
  const error = await t.throwsAsync(startAgent(options), { instanceOf: RsmError })
  t.is(error?.code, 'usage')
  t.regex(error?.hint ?? '', /rsm hosts join/)
})

test('a registered agent starts without its server, and links once the server is up', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const first = await FakeServer.start()
  await (await startAgent(agentOptions(first, dataDir))).stop()
  const options = agentOptions(first, dataDir)
  const { port } = first
  await first.close()
  const clock: Clock = {
    ...systemClock,
    after: (delay, run) => systemClock.after(delay > 2_000 && delay <= 5_000 ? 100 : delay, run),
  }
  const agent = await startAgent({ ...options, clock })
  t.false(agent.linked())
  const second = await FakeServer.start(port)
  t.teardown(async () => {
    await agent.stop()
    await second.close()
  })
  await second.linked()
  t.is(second.registrations, 0)
  t.true(agent.linked())
})

for (const status of [503, 429])
  test(`registration, heartbeats and links honour the Retry-After of a ${status}`, async (t) => {
    const server = await FakeServer.start()
    server.headers = { 'retry-after': '20' }
    server.refusesLinks = status
    const waits = new Map<string, unknown[]>()
    const timesOf = (what: string) => waits.get(what)?.length ?? 0
    const [registered, beat, linked] = ['not registered yet', 'no heartbeat', 'no link to the server']
    server.intercept = (path) => {
      const isRefused =
        (path === '/api/agent/register' && timesOf(registered) < 3) ||
        (path === '/api/agent/heartbeat' && timesOf(beat) < 3)
      return isRefused ? { status, message: 'later' } : undefined
    }
    const clock: Clock = {
      ...systemClock,
      after: (delay, run) => systemClock.after(delay === 20_000 ? 20 : delay, run),
    }
    const options = {
      ...agentOptions(server, await temporaryDirectory(t)),
      clock,
      random: () => 0,
      logLevel: 'WARN' as const,
      log: (_level: string, message: string, more: object = {}) => {
        if ('retryInMs' in more) waits.set(message, [...(waits.get(message) ?? []), more.retryInMs])
      },
    }
    const agent = await startAgent(options)
    t.teardown(async () => {
      await agent.stop()
      await server.close()
    })
    await until('links were refused', () => timesOf(linked) >= 3)
    server.refusesLinks = null
    await server.linked()
    for (const what of [registered, beat, linked])
      t.deepEqual(new Set(waits.get(what)), new Set([20_000]), what)
  })

test('an agent retries a revoked token only every five minutes', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  const { enrollToken: _, ...known } = agentOptions(server, dataDir)
  await (await startAgent(agentOptions(server, dataDir))).stop()
  server.intercept = () => ({ status: 401, message: 'revoked' })
  const delays: number[] = []
  const clock: Clock = {
    ...systemClock,
    after(delay, run) {
      delays.push(delay)
      return systemClock.after(delay, run)
    },
  }
  const messages: string[] = []
  const agent = await startAgent({ ...known, clock, log: (_level, message) => messages.push(message) })
  await until('it waits for five minutes', () => delays.includes(300_000))
  await agent.stop()
  await server.close()
  t.true(messages.some((message) => /no longer valid/.test(message)))
})

for (const [own, set, heard] of [
  ['DEBUG', 'ERROR', true],
  ['ERROR', 'DEBUG', false],
  [undefined, 'DEBUG', true],
  [undefined, 'ERROR', false],
] as const)
  test(`an agent with ${own ?? 'no'} log level ${heard ? 'logs' : 'drops'} WARN if its server sets ${set}`, async (t) => {
    const messages: string[] = []
    const server = await FakeServer.start()
    server.logLevel = set
    server.intervals = { heartbeatInterval: 1, metricsInterval: 60 }
    const options = agentOptions(server, await temporaryDirectory(t))
    const log = (_level: string, message: string) => messages.push(message)
    const agent = await startAgent({ ...options, logLevel: own, log, clock: hasty })
    t.teardown(async () => {
      await agent.stop()
      await server.close()
    })
    // The first heartbeat requests the configuration, so the second one follows it.
    await server.until(() => server.heartbeats.length >= 2 && agent.linked(), 'it is configured')
    server.send('ERROR', { code: 400, message: 'to be logged', refId: null })
    server.execute(agent.agentId, { taskId: 'after' })
    await server.completed('after')
    t.is(messages.includes('the server refused a message'), heard)
  })

test('F07 an agent sends a heartbeat at once after a new link, because the server may have lost the status', async (t) => {
  const { server } = await linkedAgent(t)
  await server.until(() => server.heartbeats.length === 1, 'the first heartbeat')
  server.socket?.terminate()
  await server.linked(2)
  await server.until(() => server.heartbeats.length === 2, 'one more, long before its time')
  t.pass()
})
