import { randomInt } from 'node:crypto'
import type { Page } from '../../../src/core/protocol/http/common.ts'
import type { Schedule, ScheduleSlot } from '../../../src/core/protocol/http/schedules.ts'
import type { TaskSummary } from '../../../src/core/protocol/http/tasks.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import type { ServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

const kills = 6
const second = 1000

test.serial(
  'F21 each slot of a schedule runs once or is recorded as skipped by servers that are killed in turn',
  async (t) => {
    t.timeout(110_000)
    const { servers } = await startCluster(t, { size: 2 })
    const [one, two] = servers as [ServerProcess, ServerProcess]
    await one.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
    const { id }: Schedule = await one.data('POST', '/api/schedules', {
      name: 'each second',
      everySeconds: 1,
      script: { content: 'true' },
      target: { selector: 'web1' },
      queueSeconds: 0,
      overlap: 'ALLOW',
    })
    const history = async (server: ServerProcess): Promise<ScheduleSlot[]> => {
      const page: Page<ScheduleSlot> = await server.data('GET', `/api/schedules/${id}/history?size=200`)
      return page.content.toReversed()
    }
    for (let kill = 0; kill < kills; kill++) {
      const [victim, other] = kill % 2 === 0 ? [one, two] : [two, one]
      const before = (await history(other)).length
      const wait = performance.now() + randomInt(second)
      await until('the random moment has come', () => performance.now() >= wait)
      await victim.kill()
      await until('the other server continues', async () => (await history(other)).length > before + 1)
      await victim.start()
    }
    await one.data('PATCH', `/api/schedules/${id}`, { enabled: false })
    const told = await history(two)
    const ran = told.filter(({ outcome }) => outcome === 'STARTED')
    const tasks: Page<TaskSummary> = await two.data('GET', `/api/tasks?scheduleId=${id}&size=500`)
    t.deepEqual(
      tasks.content.map(({ plannedAt }) => String(plannedAt)).toSorted(),
      ran.map(({ plannedAt }) => plannedAt),
    )
    let next = Date.parse(told[0]?.firstAt ?? '')
    for (const { firstAt, plannedAt, count } of told) {
      t.is(Date.parse(firstAt), next, 'no slot is missing or recorded twice')
      next = Date.parse(plannedAt) + second
      t.is(count, (next - Date.parse(firstAt)) / second)
    }
    t.true(ran.length > kills)
    t.log(`${ran.length} ran, ${told.length - ran.length} entries of missed slots`)
  },
)
