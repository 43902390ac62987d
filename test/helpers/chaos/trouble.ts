import { setTimeout as delay } from 'node:timers/promises'
import type { ChaosAgent, ChaosFleet } from './fleet.ts'
import type { Random } from './random.ts'

/** One round of trouble; returns its description for the log. Everything is up again, or starting, when it settles. */
type Trouble = (fleet: ChaosFleet, random: Random) => Promise<string>

const upTo = (random: Random, milliseconds: number) => delay(random.between(0, milliseconds))

async function serverDown(fleet: ChaosFleet, random: Random): Promise<void> {
  await fleet.server.kill()
  await upTo(random, 2_000)
  if (random.next() < 0.3) {
    // Kill it during its start, too.
    const starting = fleet.server.start()
    await upTo(random, 600)
    await fleet.server.kill()
    await starting
  }
  await fleet.server.start()
}

async function agentDown(agent: ChaosAgent, random: Random): Promise<void> {
  await agent.kill()
  await upTo(random, 2_000)
  if (random.next() < 0.3) {
    const starting = agent.start()
    await upTo(random, 600)
    await agent.kill()
    await starting
  }
  await agent.start()
}

const names = (agents: readonly ChaosAgent[]) => agents.map(({ hostname }) => hostname).join(' ')

const troubles: Record<string, Trouble> = {
  async server(fleet, random) {
    await serverDown(fleet, random)
    return 'server'
  },
  async agents(fleet, random) {
    const hit = random.some(fleet.agents, random.between(1, fleet.agents.length))
    await Promise.all(hit.map((agent) => agentDown(agent, random)))
    return `agents ${names(hit)}`
  },
  async cuts(fleet, random) {
    const hit = random.some(fleet.agents, random.between(1, fleet.agents.length))
    const times = random.between(1, 3)
    for (let time = 0; time < times; time += 1) {
      for (const { link } of hit) link.cut()
      await upTo(random, 700)
    }
    return `${times} cuts ${names(hit)}`
  },
  async freeze(fleet, random) {
    const hit = random.some(fleet.agents, random.between(1, fleet.agents.length))
    const ends = random.next() < 0.5
    for (const { link } of hit) link.freeze()
    await upTo(random, 3_000)
    for (const { link } of hit) {
      if (ends) link.cut()
      link.thaw()
    }
    return `freeze ${names(hit)}${ends ? ', then cut' : ''}`
  },
  async halfOpen(fleet, random) {
    // The server still holds the dead agent's link when the next agent links.
    const agent = random.pick(fleet.agents)
    agent.link.freeze({ standing: true })
    await upTo(random, 300)
    await agentDown(agent, random)
    await upTo(random, 1_000)
    agent.link.thaw()
    return `half open ${agent.hostname}, killed`
  },
  async everything(fleet, random) {
    const hit = random.some(fleet.agents, random.between(1, fleet.agents.length))
    for (const { link } of random.some(fleet.agents, 2)) link.cut()
    await Promise.all([serverDown(fleet, random), ...hit.map((agent) => agentDown(agent, random))])
    return `server and agents ${names(hit)}`
  },
}

const chances = ['server', 'server', 'agents', 'agents', 'agents', 'cuts', 'freeze', 'halfOpen', 'everything']

export function trouble(fleet: ChaosFleet, random: Random): Promise<string> {
  return troubles[random.pick(chances)]?.(fleet, random) ?? Promise.resolve('nothing')
}
