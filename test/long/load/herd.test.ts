import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { startHerd } from '../../../bench/herd/generator.ts'
import type { Identity } from '../../helpers/agents/scripted-agent.ts'
import { patience } from '../../helpers/patience.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const herd = 1500
/** Links accepted between two responses of the API; almost all if the API were served after them. */
const mostLinksBetween = herd / 3

/** Registers agents of `count` hosts. */
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

const linksOf = async ({ url, token }: TestServer): Promise<number> => {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })
  return Number(/^rsm_agent_links (\d+)$/m.exec(await answer.text())?.[1])
}

test('A12 the server answers requests while a whole fleet links at once, and no host is OFFLINE', async (t) => {
  const server = await startTestServer(t)
  const agents = await enrollMany(server, herd)
  await server.restart()
  // The first response loads the code for metrics.
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
    `${Math.max(...steps)} links were accepted between two responses`,
  )
  await until('all agents are linked', async () => {
    const { content } = await server.data('GET', '/api/hosts?size=500')
    return content.every(({ agent }: { agent: { connected: boolean } }) => agent.connected)
  })
  t.is((await server.data('GET', '/api/hosts?status=OFFLINE&size=1')).totalElements, 0)
})
