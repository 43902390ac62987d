import { setTimeout } from 'node:timers/promises'
import { startProtocolFleet } from './fleet/protocol-fleet.ts'
import type { BenchServer } from './fleet/server.ts'
import type { Row } from './row.ts'

const schedules = 1000
const agents = 20
/** Concurrent calls. */
const atOnce = 32
/** Milliseconds within which all schedules must start. */
const minute = 60_000
/** Milliseconds until the schedules are due: time for creating them. */
const ahead = 60_000

/** A schedule on one host; hosts take turns. */
const order = (hosts: readonly string[], n: number) => ({
  script: { content: 'true' },
  target: { selector: hosts[n % hosts.length] },
})

async function each(work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const one = async () => {
    while (next < schedules) await work(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, one))
}

/** Milliseconds from the common slot to the creation of the last task. */
async function untilAllStarted(server: BenchServer, hosts: readonly string[]): Promise<number> {
  const at = new Date(Date.now() + ahead).toISOString()
  await each((n) =>
    server.call('POST', '/api/schedules', {
      ...order(hosts, n),
      name: `schedule ${n}`,
      at,
    }),
  )
  if (Date.now() >= Date.parse(at)) throw new Error(`${schedules} schedules could not be created in time`)
  let started = 0
  let last = Number.NaN
  for (const end = Date.parse(at) + 2 * minute; started < schedules && Date.now() < end; ) {
    await setTimeout(1000)
    const page = await server.call('GET', '/api/tasks?size=1')
    started = Number(page['totalElements'])
    const [newest] = page['content'] as { createdAt: string }[]
    last = Date.parse(newest?.createdAt ?? '') - Date.parse(at)
  }
  if (started < schedules) throw new Error(`only ${started} of ${schedules} schedules have started`)
  return last
}

/** Schedules due at the same time vs plain calls for the same tasks. */
export async function benchSchedules(): Promise<Row[]> {
  const server = await startProtocolFleet(agents, agents)
  try {
    const { content } = await server.call('GET', `/api/hosts?size=${agents}`)
    const hosts = (content as { hostname: string }[]).map(({ hostname }) => hostname)
    const ours = await untilAllStarted(server, hosts)
    const began = performance.now()
    await each((n) => server.call('POST', '/api/tasks', order(hosts, n)))
    const baseline = performance.now() - began
    const name = `${schedules} schedules due at once, to the start of the last task, vs ${schedules} × POST /api/tasks`
    const met = ours <= minute
    return [{ name, unit: 'ms', ours, baseline, ratio: ours / baseline, goal: `≤ ${minute} ms`, met }]
  } finally {
    await server.stop()
  }
}
