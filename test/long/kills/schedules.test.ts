import { randomInt } from 'node:crypto'
import test from 'ava'
import type { Page } from '../../../src/core/protocol/http/common.ts'
import type { Schedule, ScheduleSlot } from '../../../src/core/protocol/http/schedules.ts'
import type { TaskSummary } from '../../../src/core/protocol/http/tasks.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

/** Kills per server; there are two. */
const kills = 15
/** Seconds of the server's clock per second: a slot every 250 ms, also while no server runs. */
const speed = 4
const second = 1000

/** Adds the history's entries by their last slot. It keeps 100, so it is read between kills. */
async function collect(server: ServerProcess, id: number, into: Map<string, ScheduleSlot>): Promise<void> {
  const page: Page<ScheduleSlot> = await server.data('GET', `/api/schedules/${id}/history?size=200`)
  for (const slot of page.content) into.set(slot.plannedAt, slot)
}

async function tasksOf(server: ServerProcess, id: number): Promise<TaskSummary[]> {
  const all: TaskSummary[] = []
  for (let page = 0; ; page++) {
    const found: Page<TaskSummary> = await server.data(
      'GET',
      `/api/tasks?scheduleId=${id}&size=500&page=${page}`,
    )
    all.push(...found.content)
    if (all.length >= found.totalElements) return all
  }
}

const killed = test.macro(async (t) => {
  t.timeout(119_000)
  const server = await startServerProcess(t, { clockSpeed: speed })
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const { id }: Schedule = await server.data('POST', '/api/schedules', {
    name: 'each second',
    everySeconds: 1,
    script: { content: 'true' },
    target: { selector: 'web1' },
    queueSeconds: 0,
    overlap: 'ALLOW',
  })
  const slots = new Map<string, ScheduleSlot>()
  for (let kill = 0; kill < kills; kill++) {
    const before = slots.size
    await until('new slots are recorded', async () => {
      await collect(server, id, slots)
      return slots.size > before
    })
    const wait = performance.now() + randomInt(700)
    await until('the random moment has come', () => performance.now() >= wait)
    await server.kill()
    await server.start()
  }
  await server.data('PATCH', `/api/schedules/${id}`, { enabled: false })
  await collect(server, id, slots)

  const told = [...slots.values()].sort((a, b) => (a.plannedAt < b.plannedAt ? -1 : 1))
  const ran = told.filter(({ outcome }) => outcome === 'STARTED')
  const tasks = await tasksOf(server, id)
  t.deepEqual(
    tasks.map(({ plannedAt }) => String(plannedAt)).toSorted(),
    ran.map(({ plannedAt }) => plannedAt),
    'one task for each slot that ran',
  )
  let next = Date.parse(told[0]?.firstAt ?? '')
  for (const { firstAt, plannedAt, count, outcome, why } of told) {
    t.is(Date.parse(firstAt), next, 'no slot is missing or recorded twice')
    next = Date.parse(plannedAt) + second
    t.is(count, (next - Date.parse(firstAt)) / second)
    const isPaused = why === 'PAUSED' && plannedAt === told.at(-1)?.plannedAt
    t.is(why, outcome === 'STARTED' ? null : isPaused ? 'PAUSED' : 'MISSED')
  }
  t.true(ran.length >= kills)
  t.true(told.length - ran.length >= kills / 2, 'slots were missed while the server was down')
  t.log(`${ran.length} ran, ${told.length - ran.length} entries of missed slots`)
})

for (const which of ['a', 'another'])
  test(
    `F21 each slot of a schedule runs once or is recorded as skipped while ${which} server is killed ${kills} times`,
    killed,
  )
