import { mock } from 'node:test'
import test, { type ExecutionContext } from 'ava'
import { createKnownHosts } from '../../../src/server/storage/known-hosts.ts'

const begin = Date.parse('2026-03-02T09:30:00.000Z')

/** Hosts judged by a clock of the test; each sweep runs at its due time. */
function judged(t: ExecutionContext) {
  mock.timers.enable({ apis: ['setInterval'] })
  let now = 0
  const state = { isCutOff: false }
  const hosts = createKnownHosts({
    heartbeatInterval: 30,
    version: '0.1.0',
    clock: { now: () => begin + now, monotonic: () => now },
    hints: { publish() {} },
    changed() {},
    isCutOff: () => state.isCutOff,
  })
  t.teardown(() => {
    hosts.close()
    mock.timers.reset()
  })
  return {
    hosts,
    state,
    /** Lets this number of seconds pass. */
    pass: (seconds: number) => {
      for (let passed = 0; passed < seconds; passed++) {
        now += 1000
        mock.timers.tick(1000)
      }
    },
    standStill: (seconds: number) => {
      now += seconds * 1000
      mock.timers.tick(1000)
    },
    statuses: async (ids: readonly number[]) => (await hosts.views(ids)).map(({ status }) => status),
  }
}

test.serial(
  'no host goes OFFLINE because of silence during a store outage, or before its agent had time to return',
  async (t) => {
    const { hosts, state, pass, statuses } = judged(t)
    for (const hostId of [1, 2, 3]) hosts.registered(hostId)
    pass(80)
    for (const hostId of [1, 2]) hosts.heartbeat(hostId, { status: 'HEALTHY' })
    pass(15)
    t.deepEqual(await statuses([1, 2, 3]), ['ONLINE', 'ONLINE', 'OFFLINE'])
    pass(60)
    state.isCutOff = true
    pass(180)
    state.isCutOff = false
    t.deepEqual(await statuses([1, 2, 3]), ['ONLINE', 'ONLINE', 'OFFLINE'])
    pass(74)
    hosts.heartbeat(1, { status: 'HEALTHY' })
    pass(15)
    t.deepEqual(await statuses([1, 2, 3]), ['ONLINE', 'ONLINE', 'OFFLINE'])
    pass(2)
    t.deepEqual(await statuses([1, 2, 3]), ['ONLINE', 'OFFLINE', 'OFFLINE'])
  },
)

test.serial('a server suspended until agents gave up grants them the same time to return', async (t) => {
  const { hosts, pass, standStill, statuses } = judged(t)
  hosts.registered(1)
  pass(80)
  standStill(120)
  pass(85)
  t.deepEqual(await statuses([1]), ['ONLINE'])
  pass(10)
  t.deepEqual(await statuses([1]), ['OFFLINE'])
})
