import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { subprotocol } from '../../../src/core/protocol/wire-text.ts'
import { systemClock } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import { createClients } from '../../../src/server/access/client-address.ts'
import type { WebSocketDependencies } from '../../../src/server/listeners/dependencies.ts'
import { createWebSockets } from '../../../src/server/listeners/web-sockets.ts'
import { createCluster } from '../../../src/server/storage/files/cluster.ts'
import { createLocalFacts } from '../../../src/server/storage/local-facts.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import type { AgentLink } from '../../../src/server/storage/ports/cluster.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const identity = { hostId: 1, agentId: 'web1', token: 'secret' }
const nothing = () => undefined

/** Servers a and b with one agent: their WebSocket listeners pass links to an engine that only records them. */
async function twoHubs(t: ExecutionContext) {
  const clock = systemClock
  const { ownership, links } = createCluster(clock)
  const facts = createLocalFacts()
  const duplicates: boolean[] = []
  facts.subscribe('duplicateAgent', ({ duplicate }) => duplicates.push(duplicate))
  const agent = { agentId: identity.agentId, tokenHash: '' as string | null }
  async function start(name: string) {
    const linked: AgentLink[] = []
    const unlinked: AgentLink[] = []
    const told: boolean[] = []
    const readies: (() => void)[] = []
    const engine = {
      async linked(link: AgentLink, ready: () => void) {
        linked.push(link)
        readies.push(ready)
      },
      unlinked: (link: AgentLink) => void unlinked.push(link),
    }
    const webSockets = createWebSockets({
      member: await ownership.join(name),
      links,
      engine,
      credentials: () => ({ type: 'agent', ...identity, tokenHash: '' }),
      terminals: { linked: nothing, unlinked: nothing },
      presence: {
        greeted: nothing,
        connected: (_: number, isUp: boolean) => void told.push(isUp),
        duplicate: nothing,
      },
      hints: createLocalHints(),
      store: { getMany: async (_: 'hosts', ids: number[]) => ids.map(() => ({ agent })) },
      facts,
      clock,
      log: createLog('ERROR'),
      wsIdleTimeout: 300,
      clients: createClients([]),
      accepting: () => true,
      holdsLease: () => true,
      refused: async () => undefined,
    } as unknown as WebSocketDependencies)
    const server = createServer()
    webSockets.attach(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      webSockets.close()
      server.closeAllConnections()
      server.close()
    })
    return {
      linked,
      unlinked,
      told,
      readies,
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    }
  }
  return { links, duplicates, agent, a: await start('a'), b: await start('b') }
}

test('other servers learn of a link once it is stored, unless it has closed by then', async (t) => {
  const { a } = await twoHubs(t)
  await ScriptedAgent.link(a, identity)
  await until('a has the link', () => a.linked.length === 1)
  t.deepEqual(a.told, [false])
  a.readies[0]?.()
  t.deepEqual(a.told, [false, true])
  const second = await ScriptedAgent.link(a, identity)
  await until('a has the second link', () => a.linked.length === 2)
  second.socket.terminate()
  await until('the second link is closed', () => a.unlinked.length === 2)
  const before = [...a.told]
  a.readies[1]?.()
  t.deepEqual(a.told, before)
})

test('P12 a link that another server has replaced closes itself', async (t) => {
  const { links, a, b } = await twoHubs(t)
  const first = await ScriptedAgent.link(a, identity)
  await until('a has the link', () => a.linked.length === 1)
  t.is((await links.holder(1))?.server.name, 'a')
  const second = await ScriptedAgent.link(b, identity)
  t.deepEqual(await first.closed, { code: 4409, reason: 'replaced by a newer link' })
  t.deepEqual(a.unlinked, a.linked)
  await until('b has the link', () => b.linked.length === 1)
  const holder = await links.holder(1)
  t.is(holder?.server.name, 'b')
  t.is(b.linked[0]?.claim.epoch, holder?.epoch)
  await second.cut()
  await until('the link is released', async () => (await links.holder(1)) === null)
})

test('a link whose agent was revoked closes even if the hint was lost', async (t) => {
  const { agent, a } = await twoHubs(t)
  const link = await ScriptedAgent.link(a, identity)
  await until('a has the link', () => a.linked.length === 1)
  agent.tokenHash = null
  t.deepEqual(await link.closed, { code: 4401, reason: 'the token was revoked' })
})

test('a link that closes before its agent has proven it is never passed to the engine', async (t) => {
  const { links, a } = await twoHubs(t)
  const agent = await ScriptedAgent.link(a, identity, { pongs: false })
  await until('it has a claim', async () => (await links.holder(1)) !== null)
  await agent.cut()
  await until('the link is released', async () => (await links.holder(1)) === null)
  t.deepEqual([a.linked, a.unlinked], [[], []])
})

test('P13 F12 replacements at two servers count together, and both refuse new links', async (t) => {
  const { duplicates, a, b } = await twoHubs(t)
  const agents = []
  for (const server of [a, b, a, b]) agents.push(await ScriptedAgent.link(server, identity))
  for (const agent of agents.slice(0, 3)) t.is((await agent.closed).code, 4409)
  t.deepEqual(duplicates, [true])
  for (const server of [a, b])
    await t.throwsAsync(ScriptedAgent.link(server, identity), { message: 'refused with 409' })
  await agents[3]?.cut()
  await until('a accepts links again', () =>
    ScriptedAgent.link(a, identity).then(
      () => true,
      () => false,
    ),
  )
})

for (const [what, storeId] of [
  ['an agent of rsm', 'store-1'],
  ['an agent of the base protocol', null],
] as const)
  test(`P51 ${what} is sent nothing, and does not count as connected, until it has answered a ping`, async (t) => {
    const server = await startTestServer(t)
    const host = await server.enroll('web1')
    const isConnected = async () => (await server.data('GET', `/api/hosts/${host.hostId}`)).agent.connected
    const taskId = await startTask(server, [host.hostId])
    const agent = await ScriptedAgent.link(server, host, { storeId, pongs: false })
    // The server's pong follows everything that it would have sent before.
    agent.socket.ping()
    await new Promise((resolve) => agent.socket.once('pong', resolve))
    t.false(await isConnected())
    t.deepEqual(agent.heard, [])
    await agent.pong()
    await agent.execution(taskId)
    t.true(await isConnected())
  })

test('P51 reconciliation begins after the pong, with the HELLO received before it', async (t) => {
  const { a } = await twoHubs(t)
  const agent = await ScriptedAgent.link(a, identity, { storeId: 'journal-7', pongs: false })
  t.is(agent.socket.protocol, subprotocol)
  agent.socket.ping()
  await new Promise((resolve) => agent.socket.once('pong', resolve))
  t.deepEqual(a.linked, [])
  await agent.pong()
  await until('the link is passed on', () => a.linked.length === 1)
  t.like(a.linked[0]?.hello, { storeId: 'journal-7' })
})
