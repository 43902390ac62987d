import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { startHerd } from '../../../bench/herd/generator.ts'
import { createAdmission } from '../../../src/server/hub/admission.ts'
import type { Identity } from '../../helpers/agents/scripted-agent.ts'
import { patience } from '../../helpers/patience.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const herd = 1500
/** The kernel holds no more connections for a listener that asks for more. */
const somaxconn = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))
/** Between two answers of the API: with one in turn of thousands it would be nearly all of them. */
const mostLinksBetween = herd / 3

/** The agents of so many hosts. */
async function enrollMany(server: TestServer, count: number): Promise<Identity[]> {
  const { token } = await server.data('POST', '/api/enrollment-tokens', { maxUses: count })
  const headers = { authorization: `Bearer ${token}` }
  const agents: Identity[] = []
  for (let from = 0; from < count; from += 100)
    await Promise.all(
      Array.from({ length: Math.min(100, count - from) }, async (_, n) => {
        const [agentId, hostname] = [`agent-${from + n}`, `web${from + n}`]
        const { body } = await server.api('POST', '/api/agent/register', { agentId, hostname }, headers)
        agents.push({ agentId, hostId: body.data.hostId, token: body.data.token })
      }),
    )
  return agents
}

/** Connections of a port that are made, accepted or not. */
function madeAt(port: number): number {
  const place = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const established = '01'
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  const sockets = lines.map((line) => line.trim().split(/\s+/))
  const made = sockets.filter(
    ([, local, , state]) => local?.endsWith(place) === true && state === established,
  )
  // The kernel lists a socket twice when others come and go while it is read.
  return new Set(made.map(([, , remote]) => remote)).size
}

const linksOf = async ({ url, token }: TestServer): Promise<number> => {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })
  return Number(/^rsm_agent_links (\d+)$/m.exec(await answer.text())?.[1])
}

/** Connects at once, in one turn of the loop, that none is accepted in between. */
async function connectAtOnce(t: ExecutionContext, port: number, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    t.teardown(() => socket.destroy())
  }
  await new Promise((resolve) => process.nextTick(resolve))
}

test('A12 a herd of connections finds room with the kernel before the first is accepted', async (t) => {
  const server = await startTestServer(t)
  const port = Number(new URL(server.url).port)
  const before = madeAt(port)
  await connectAtOnce(t, port, herd)
  t.is(madeAt(port) - before, Math.min(herd, somaxconn + 1))
})

test('A12 calls are answered while a whole fleet links at once, and no host is OFFLINE', async (t) => {
  const server = await startTestServer(t)
  const agents = await enrollMany(server, herd)
  await server.restart()
  // The first answer loads what presents the figures.
  await linksOf(server)
  const fleet = startHerd(server.url, agents)
  t.teardown(() => fleet.stop())
  const seen = [0]
  const began = performance.now()
  while ((seen.at(-1) ?? 0) < herd) {
    seen.push(await linksOf(server))
    await setImmediate()
    if (performance.now() - began > patience)
      throw new Error(`the server has ${seen.at(-1)} links, the agents ${fleet.open}`)
  }
  await fleet.opened(herd)
  const steps = seen.slice(1).map((links, at) => links - (seen[at] ?? 0))
  t.true(
    Math.max(...steps) <= mostLinksBetween,
    `${Math.max(...steps)} links were taken up between two answers`,
  )
  await until('all have said HELLO', async () => {
    const { content } = await server.data('GET', '/api/hosts?size=500')
    return content.every(({ agent }: { agent: { connected: boolean } }) => agent.connected)
  })
  t.is((await server.data('GET', '/api/hosts?status=OFFLINE&size=1')).totalElements, 0)
})

test('A12 links are taken up in turns, in their order, and those that come meanwhile wait for theirs', async (t) => {
  const admission = createAdmission()
  const admitted: number[] = []
  const perTurn: number[] = []
  for (let n = 0; n < 100; n++) admission.queue(() => admitted.push(n))
  while (admitted.length < 150) {
    const before = admitted.length
    await setImmediate()
    perTurn.push(admitted.length - before)
    if (perTurn.length === 2) for (let n = 100; n < 150; n++) admission.queue(() => admitted.push(n))
    if (perTurn.length > 100) break
  }
  t.deepEqual(
    admitted,
    Array.from({ length: 150 }, (_, n) => n),
  )
  t.true(Math.max(...perTurn) <= 20, perTurn.join(' '))
})
