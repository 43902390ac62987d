import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { soundAudit } from '../../helpers/audit/sound-audit.ts'
import { insist } from '../../helpers/chaos/load.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { journalAgents } from '../../helpers/cluster/journal-agent.ts'
import { faultsOf, sayAll, startedTwice } from '../../helpers/cluster/sayings.ts'
import { countStart, startsIn } from '../../helpers/servers/linked-pair.ts'
import { until } from '../../helpers/until.ts'

test.serial(
  'F26 a synchronous standby promoted during tasks has all acknowledged data, and servers find it',
  async (t) => {
    t.timeout(110_000)
    const { servers, postgres, standby, front } = await startCluster(t, { standby: 'synchronous' })
    const [, b] = servers
    if (!b || !standby) throw new Error('no second server or standby')
    const agents = await journalAgents(t, front, { count: 12, pace: 200 })
    const hostIds = agents.map(({ identity }) => identity.hostId)
    const acknowledged: string[] = []
    const over = new AbortController()
    const writing = (async () => {
      for (let n = 1; !over.signal.aborted; n += 1) {
        const name = `written${n}`
        await insist(front, 'POST', '/api/clusters', { name, hostIds: [] })
        acknowledged.push(name)
      }
    })()
    const sayings = [3, 20, 40].map((pieces) => ({ pieces, exitCode: pieces === 20 ? 3 : 0 }))
    const ending = sayings.map((saying) => sayAll({ front, follower: b }, { saying, hostIds }))
    await delay(1500)
    const head = await soundAudit(t, front)
    const open = agents.reduce((sum, agent) => sum + agent.open, 0)
    postgres.stop('immediate')
    const before = acknowledged.length
    standby.promote()
    const promotedAt = performance.now()
    await Promise.all(
      servers.map((server) =>
        until('the server is ready', async () => (await server.api('GET', '/api/ready')).status === 200),
      ),
    )
    t.log(
      `${before} writes and ${open} open executions at the kill; all servers ready ${Math.round(performance.now() - promotedAt)} ms after the promotion`,
    )
    const all = await Promise.all(ending)
    over.abort()
    await writing
    t.true(open > 12)
    t.deepEqual(all.flatMap(faultsOf), [])
    t.deepEqual(startedTwice(agents), [])
    const names = new Set<string>()
    for (let page = 0, pages = 1; page < pages; page++) {
      const { content, totalPages } = await b.data('GET', `/api/clusters?size=500&page=${page}`)
      pages = totalPages
      for (const { name } of content) names.add(name)
    }
    t.deepEqual(
      acknowledged.filter((name) => !names.has(name)),
      [],
    )
    await soundAudit(t, front, head)
    const rewound = await b.data('GET', '/api/audit?action=store.rewound')
    t.is(rewound.totalElements, 0)
  },
)

test.serial(
  'F26 a promoted asynchronous standby lacks acknowledged data: the audit log says so, and nothing starts twice',
  async (t) => {
    t.timeout(110_000)
    const { servers, postgres, standby, front } = await startCluster(t, { standby: 'asynchronous' })
    const [, b] = servers
    if (!b || !standby) throw new Error('no second server or standby')
    const [one, two] = [await temporaryDirectory(t), await temporaryDirectory(t)]
    const gate = join(one, 'gate')
    const agents = [
      await realAgent(t, front, { hostname: 'web1' }),
      await realAgent(t, front, { hostname: 'web2' }),
    ]
    const [first, second] = agents.map(({ hostId }) => hostId)
    if (!first || !second) throw new Error('no two agents')
    const waits = `${countStart(one)}; echo one; until [ -e ${gate} ]; do sleep 0.05; done; echo two; exit 3`
    const known = await startTask(front, [first], { script: { content: waits } })
    await until('the script runs', async () => (await startsIn(one)) === 1)
    const waiting = await startTask(front, [second], {
      script: { content: `${countStart(two)}; exit 5` },
      strategy: 'SEQUENTIAL',
    })
    await finished(front, waiting)
    // Includes a mark, which is written every second.
    await delay(2500)

    standby.stop('fast')
    writeFileSync(gate, '')
    t.is((await finished(front, known)).results[0]?.exitCode, 3)
    const lost = await startTask(front, [second], { script: { content: `${countStart(two)}; exit 6` } })
    t.is((await finished(front, lost)).results[0]?.exitCode, 6)
    await delay(1500)
    postgres.stop('immediate')
    standby.start()
    standby.promote()
    await Promise.all(servers.map((server) => server.ended()))
    for (const server of servers) await server.start()

    await until('all agents are linked', () => agents.every((agent) => agent.linked()))
    const ended = await finished(b, known)
    // Its agent deleted it after the end was acknowledged.
    t.like(ended.results[0], { status: 'LOST', exitCode: null, outputComplete: false })
    t.is(await startsIn(one), 1)
    t.is(await startsIn(two), 2)
    t.is((await b.api('GET', `/api/tasks/${lost}`)).status, 404)
    t.is((await task(b, waiting)).results[0]?.exitCode, 5)
    const { content } = await b.data('GET', '/api/audit?action=store.rewound')
    t.true(content.length > 0)
    for (const { detail } of content) {
      t.regex(detail.message, /^data acknowledged after .* may be lost$/)
      t.true(detail.timelineNow > detail.timeline)
    }
    const { restore } = await b.data('GET', '/api/server/status')
    t.regex(restore.reason, /the agent of web[12] knows of later work/)
    await soundAudit(t, b)
  },
)
