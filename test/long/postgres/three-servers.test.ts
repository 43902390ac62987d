import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import type { Server } from '../../../src/core/protocol/http/server.ts'
import { settleTime } from '../../../src/server/storage/postgres/ownership/lives.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { followEvents, textOf } from '../../helpers/clients/follow.ts'
import { finished, startTask, statusesOf, task } from '../../helpers/clients/tasks.ts'
import { type Cluster, startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import type { ServerProcess } from '../../helpers/servers/server-process.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, withTerminals } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

type Three = readonly [ServerProcess, ServerProcess, ServerProcess]

async function three(t: ExecutionContext): Promise<{ servers: Three } & Cluster> {
  const cluster = await startCluster(t)
  const [a, b, c] = cluster.servers
  if (!a || !b || !c) throw new Error('no three servers')
  return { ...cluster, servers: [a, b, c] }
}

const sequential = { strategy: 'SEQUENTIAL' }
const withToken = ({ token }: ServerProcess) => ({ authorization: `Bearer ${token}` })

test.serial(
  'a task started at one server runs on the agent of another; a third shows its complete log and cancels',
  async (t) => {
    const { servers } = await three(t)
    const [a, b, c] = servers
    const identity = await a.enroll('web1')
    const agent = await ScriptedAgent.link(b, identity)
    const first = await startTask(a, [identity.hostId])
    await agent.execution(first)
    const following = followEvents(
      `${c.url}/api/tasks/${first}/logs?follow=true`,
      withToken(c),
      ({ event }) => event === 'end',
    )
    const pieces = Array.from({ length: 200 }, (_, piece) => `line ${piece} ${'ä'.repeat(piece)}\n`)
    for (const [sequence, piece] of pieces.entries()) agent.output(first, sequence, piece)
    await agent.acknowledged(first, pieces.length - 1)
    agent.complete(first, 0, { lastSequence: pieces.length - 1 })
    await agent.released(first)
    const events = await following
    t.is(textOf(events), pieces.join(''))
    t.deepEqual(statusesOf(events.at(-1)?.data), ['SUCCESS'])
    t.deepEqual(await task(a, first), await task(c, first))

    const second = await startTask(a, [identity.hostId])
    await agent.execution(second)
    await c.data('POST', `/api/tasks/${second}/cancel`)
    await agent.next('CANCEL_SCRIPT', ({ taskId }) => taskId === second)
    agent.complete(second, 143, { lastSequence: -1, status: 'CANCELLED' })
    t.is((await finished(b, second)).status, 'CANCELLED')
  },
)

test.serial('all servers show the same servers, each with its version, lease, links and tasks', async (t) => {
  const { servers } = await three(t)
  const [a, b, c] = servers
  const identity = await a.enroll('web1')
  const agent = await ScriptedAgent.link(b, identity)
  await agent.settled()
  const taskId = await startTask(c, [identity.hostId])
  await agent.execution(taskId)
  for (const server of servers) t.is((await task(server, taskId)).server, 'server3')
  const env = { RSM_URL: a.url, RSM_TOKEN: a.token }
  const { stdout } = await runRsm(['tasks', 'show', taskId], cleanEnv(temporaryDirectory(t), env))
  t.regex(stdout, /^server +server3$/m)
  const seen = async (server: ServerProcess): Promise<Server[]> =>
    (await server.data('GET', '/api/servers')).content
  for (const [at, server] of servers.entries()) {
    const all = await seen(server)
    t.deepEqual(
      all.map(({ name, links, tasks, isThis, faults }) => ({ name, links, tasks, isThis, faults })),
      [0, 1, 2].map((number) => ({
        name: `server${number + 1}`,
        links: number === 1 ? 1 : 0,
        tasks: number === 2 ? 1 : 0,
        isThis: number === at,
        faults: [],
      })),
    )
    t.true(all.every(({ leaseUntil }) => Date.parse(leaseUntil ?? '') > Date.now()))
    t.deepEqual(
      all.map(({ address }) => address),
      servers.map(({ url }) => url),
    )
    const { of } = await scrape(server)
    t.is(of(`rsm_server_info{name="server${at + 1}"}`), 1)
    t.is(of('rsm_store_fault'), 0)
  }
  await b.kill()
  await until('the others report its faults', async () => {
    const dead = (await seen(a)).find(({ name }) => name === 'server2')
    return dead === undefined || dead.faults.length > 0
  })
})

test.serial(
  'F22 a server is killed during a task: another continues at once, and nothing starts twice',
  async (t) => {
    const { servers } = await three(t)
    const [a, b, c] = servers
    const identities = [await a.enroll('web1'), await a.enroll('web2')] as const
    const first = await ScriptedAgent.link(b, identities[0])
    const second = await ScriptedAgent.link(b, identities[1])
    let starts = 0
    for (const agent of [first, second])
      agent.socket.on('message', (data: Buffer) => {
        if (JSON.parse(data.toString()).type === 'EXECUTE_SCRIPT') starts++
      })
    const taskId = await startTask(
      a,
      identities.map(({ hostId }) => hostId),
      sequential,
    )
    await first.execution(taskId)
    // A server that has just started does not judge by locks: after a start of PostgreSQL all are missing.
    await delay(settleTime + 500)
    await a.kill()
    const killedAt = performance.now()
    first.complete(taskId)
    await second.execution(taskId)
    const took = performance.now() - killedAt
    t.log(`the next host's turn came ${Math.round(took)} ms after the kill`)
    // The lock is released with its process, before the lease of 10 s ends.
    t.true(took < 5000, `${took} ms`)
    second.complete(taskId)
    const ended = await finished(c, taskId)
    t.deepEqual(statusesOf(ended), ['SUCCESS', 'SUCCESS'])
    t.is(ended.server, null)
    t.is(starts, 2)
    await a.start()
    t.deepEqual(statusesOf(await task(a, taskId)), ['SUCCESS', 'SUCCESS'])
  },
)

test.serial(
  'F23 PostgreSQL is down for 5 s during a task: nothing is lost, and nothing runs twice',
  async (t) => {
    const { servers, postgres, front } = await three(t)
    const agents = [
      await realAgent(t, front, { hostname: 'web1' }),
      await realAgent(t, front, { hostname: 'web2' }),
    ]
    const script = 'for i in $(seq 100); do echo "$i $RSM_HOST"; sleep 0.1; done'
    const taskId = await startTask(
      servers[0],
      agents.map(({ hostId }) => hostId),
      { script: { content: script } },
    )
    await until('output arrives', async () => {
      const { entries } = await servers[1].data('GET', `/api/tasks/${taskId}/logs`)
      return entries.length > 5
    })
    postgres.stop('immediate')
    await delay(5000)
    postgres.start()
    const ended = await finished(servers[2], taskId)
    t.deepEqual(statusesOf(ended), ['SUCCESS', 'SUCCESS'])
    t.true(ended.results.every(({ outputComplete }) => outputComplete))
    for (const [at, { hostId }] of agents.entries()) {
      const { entries } = await servers[0].data('GET', `/api/tasks/${taskId}/logs?hostId=${hostId}&size=500`)
      const expected = Array.from({ length: 100 }, (_, line) => `${line + 1} web${at + 1}\n`).join('')
      t.is(entries.map(({ data }: { data: string }) => data).join(''), expected)
    }
  },
)

test.serial(
  'F23 while PostgreSQL is down writes fail with 503 and Retry-After; hosts are listed, heartbeats accepted, links kept',
  async (t) => {
    const { servers, postgres } = await three(t)
    const [a] = servers
    const identity = await a.enroll('web1')
    const agent = await ScriptedAgent.link(a, identity)
    await agent.settled()
    const asAgent = { authorization: `Bearer ${identity.token}` }
    const beat = () =>
      a.api('POST', '/api/agent/heartbeat', { agentId: identity.agentId, status: 'HEALTHY' }, asAgent)
    t.is((await beat()).status, 200)
    t.is((await a.data('GET', '/api/hosts')).content[0].hostname, 'web1')
    postgres.stop('immediate')
    await until('the server is not ready', async () => (await a.api('GET', '/api/ready')).status === 503)
    const refused = await a.api('POST', '/api/tasks', {
      script: { content: 'true' },
      target: { hostIds: [identity.hostId] },
    })
    t.is(refused.status, 503)
    t.regex(refused.headers.get('retry-after') ?? '', /^\d+$/)
    t.is((await a.data('GET', '/api/hosts')).content[0].hostname, 'web1')
    const unreached = await beat()
    t.deepEqual([unreached.status, unreached.body.data.pendingTasks], [200, 0])
    const { of } = await scrape(a)
    t.is(of('rsm_store_fault'), 1)
    t.is(of('rsm_agent_links'), 1)
    postgres.start()
    await until('the server is ready again', async () => (await a.api('GET', '/api/ready')).status === 200)
    const taskId = await startTask(a, [identity.hostId])
    await agent.execution(taskId)
    agent.complete(taskId)
    t.is((await finished(a, taskId)).status, 'SUCCESS')
  },
)

test.serial('F27 SIGTERM hands over tasks and links: another server continues at once', async (t) => {
  const { servers } = await three(t)
  const [a, b, c] = servers
  const identities = [await a.enroll('web1'), await a.enroll('web2')] as const
  const first = await ScriptedAgent.link(a, identities[0])
  const second = await ScriptedAgent.link(b, identities[1])
  const taskId = await startTask(
    a,
    identities.map(({ hostId }) => hostId),
    sequential,
  )
  await first.execution(taskId)
  const stopping = a.terminate()
  t.is((await first.closed).code, 1001)
  const again = await ScriptedAgent.link(c, identities[0], {
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  again.complete(taskId)
  await second.execution(taskId)
  second.complete(taskId)
  t.deepEqual(statusesOf(await finished(c, taskId)), ['SUCCESS', 'SUCCESS'])
  const { code, took } = await stopping
  t.is(code, 0)
  t.true(took < 10_000, `${took}`)
})

test.serial('an event stream that moves to another server begins with reset', async (t) => {
  const { servers } = await three(t)
  const [a, b] = servers
  const seen = followEvents(`${a.url}/api/events`, withToken(a), ({ event }) => event === 'host')
  await delay(500)
  await b.enroll('web1')
  const { id } = (await seen).at(-1) ?? {}
  t.truthy(id)
  const events = await followEvents(
    `${b.url}/api/events`,
    { ...withToken(b), 'last-event-id': String(id) },
    ({ event }) => event !== 'ready',
  )
  t.is(events.at(-1)?.event, 'reset')
})

test.serial(
  'F22 a terminal opened at one server, with an agent of another and a client of a third, moves with its agent',
  async (t) => {
    const { servers } = await three(t)
    const [a, b, c] = servers
    const identity = await a.enroll('web1')
    const agent = await ScriptedAgent.link(b, identity, withTerminals)
    const { sessionId } = await openTerminal(a, agent, identity.hostId)
    const client = await ScriptedTerminal.attach(c, sessionId)
    await client.next('TERMINAL_ATTACHED')
    const times: number[] = []
    for (let key = 0; key < 20; key++) {
      const typedAt = performance.now()
      client.type(String(key % 10))
      const { data } = await agent.next('TERMINAL_INPUT')
      agent.send('TERMINAL_OUTPUT', { sessionId, sequence: key, data })
      await client.next('TERMINAL_OUTPUT', ({ sequence }) => sequence === key)
      times.push(performance.now() - typedAt)
    }
    const [median = 0] = times.sort((one, other) => one - other).slice(10)
    t.log(`a key and its echo across servers take ${median.toFixed(1)} ms`)
    t.is(client.text, '01234567890123456789')
    await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 19)
    await b.kill()
    const again = await ScriptedAgent.link(a, identity, {
      ...withTerminals,
      terminals: [{ sessionId, lastSequence: 19 }],
    })
    const { after } = await again.next('TERMINAL_OPEN')
    t.is(after, 19)
    again.send('TERMINAL_OPENED', { sessionId })
    await client.closed
    const back = await ScriptedTerminal.attach(c, sessionId, { query: 'after=19' })
    await back.next('TERMINAL_ATTACHED')
    again.send('TERMINAL_OUTPUT', { sessionId, sequence: 20, data: 'on' })
    await back.shows('on')
  },
)

test.serial(
  'tokens, links and streams that end at one server end at the others: tokens within 1 s, the rest within 2 s',
  async (t) => {
    const { servers } = await three(t)
    const [a, b, c] = servers
    const identity = await a.enroll('web1')
    const agent = await ScriptedAgent.link(b, identity)
    await agent.settled()
    await a.data('POST', '/api/users', { username: 'ann', password: 'a long password', role: 'OPERATOR' })
    const login = { username: 'ann', password: 'a long password' }
    const ann = `Bearer ${(await b.data('POST', '/api/auth/login', login)).token}`
    const asAnn = (server: ServerProcess) =>
      server.api('GET', '/api/hosts', undefined, { authorization: ann })
    t.is((await asAnn(c)).status, 200)
    const following = followEvents(`${c.url}/api/events`, { authorization: ann })
    await delay(300)
    const { content } = await a.data('GET', '/api/users')
    const { id } = content.find(({ username }: { username: string }) => username === 'ann')
    await a.data('PATCH', `/api/users/${id}`, { enabled: false })
    const disabledAt = performance.now()
    await until('the token is refused', async () => (await asAnn(c)).status === 401)
    const refused = performance.now() - disabledAt
    await following
    const ended = performance.now() - disabledAt
    await a.data('DELETE', `/api/hosts/${identity.hostId}/agent`)
    const revokedAt = performance.now()
    t.is((await agent.closed).code, 4401)
    const closed = performance.now() - revokedAt
    const [x, y, z] = [refused, ended, closed].map(Math.round)
    t.log(`token refused after ${x} ms, stream ended after ${y} ms, link closed after ${z} ms`)
    t.true(refused < 2000 && ended < 4000 && closed < 4000, `${x} ${y} ${z}`)
  },
)
