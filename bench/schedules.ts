import { setTimeout } from 'node:timers/promises'
import { startProtocolFleet } from './fleet/protocol-fleet.ts'
import type { BenchServer } from './fleet/server.ts'
import type { Row } from './row.ts'

const schedules = 1000
const agents = 20
/** Calls that are under way at once. */
const atOnce = 32
/** Milliseconds in which all have to have started. */
const minute = 60_000
/** Milliseconds until they are due: so long it may take to make them. */
const ahead = 60_000

/** On one host each, in turn. */
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

/** Milliseconds from the slot of all to the creation of the last task. */
async function untilAllStarted(server: BenchServer, hosts: readonly string[]): Promise<number> {
  const at = new Date(Date.now() + ahead).toISOString()
  await each((n) =>
    server.call('POST', '/api/schedules', {
      ...order(hosts, n),
      name: `schedule ${n}`,
      at,
    }),
  )
  if (Date.now() >= Date.parse(at)) throw new Error(`${schedules} schedules were not made in time`)
  let started = 0
  let last = Number.NaN
  for (const end = Date.parse(at) + 2 * minute; started < schedules && Date.now() < end; ) {
    await setTimeout(1000)
    const page = await server.call('GET', '/api/tasks?size=1')
    started = Number(page['totalElements'])
    const [newest] = page['content'] as { createdAt: string }[]
    last = Date.parse(newest?.createdAt ?? '') - Date.parse(at)
  }
  if (started < schedules) throw new Error(`${started} of ${schedules} schedules have started`)
  return last
}

/** Schedules that are due at one moment, beside plain calls for the same tasks. */
export async function benchSchedules(): Promise<Row[]> {
  const server = await startProtocolFleet(agents, agents)
  try {
    const { content } = await server.call('GET', `/api/hosts?size=${agents}`)
    const hosts = (content as { hostname: string }[]).map(({ hostname }) => hostname)
    const ours = await untilAllStarted(server, hosts)
    const began = performance.now()
    await each((n) => server.call('POST', '/api/tasks', order(hosts, n)))
    const baseline = performance.now() - began
    const name = `${schedules} schedules due at one moment, to the start of the last task, beside ${schedules} × POST /api/tasks`
    const met = ours <= minute
    return [{ name, unit: 'ms', ours, baseline, ratio: ours / baseline, goal: `≤ ${minute} ms`, met }]
  } finally {
    await server.stop()
  }
}
