import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import type { Ending } from '../../helpers/agents/agent.ts'
import { type Identity, ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'

const agentCount = 1_000
/** Milliseconds of heartbeats that follow the storm. */
const followed = 20_000
const bareProgram = fileURLToPath(new URL('../../../bench/bare/ws-listener.js', import.meta.url))

/** Milliseconds from the request to the end of the response, on the agent's own connection, which stays open. */
function heartbeat({ url }: { url: string }, identity: Identity, agent: http.Agent): Promise<number> {
  const body = JSON.stringify({ agentId: identity.agentId, status: 'HEALTHY', uptime: 1 })
  const began = performance.now()
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${identity.token}`,
      'content-type': 'application/json',
      'content-length': body.length,
    }
    const request = http.request(
      `${url}/api/agent/heartbeat`,
      { method: 'POST', agent, headers },
      (response) => {
        response.resume()
        response.on('end', () =>
          response.statusCode === 200
            ? resolve(performance.now() - began)
            : reject(new Error(`${response.statusCode}`)),
        )
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}

async function enrolled(server: ServerProcess): Promise<Identity[]> {
  const { token } = await server.data('POST', '/api/enrollment-tokens', { maxUses: agentCount })
  const names = Array.from({ length: agentCount }, (_, at) => `web${at}`)
  const identities: Identity[] = []
  const one = async (hostname: string) => {
    const agentId = `${hostname}-${randomUUID()}`
    const body = { agentId, hostname, ipAddresses: ['127.0.0.1'], agentVersion: 'test' }
    const answer = await server.api('POST', '/api/agent/register', body, { authorization: `Bearer ${token}` })
    const { hostId, token: own } = answer.body.data
    identities.push({ hostId, agentId, token: own })
  }
  while (names.length > 0) await Promise.all(names.splice(0, 50).map(one))
  return identities
}

async function allHosts(server: ServerProcess): Promise<Host[]> {
  const pages = await Promise.all(
    [0, 1].map((page) => server.data('GET', `/api/hosts?size=500&page=${page}`)),
  )
  return pages.flatMap(({ content }) => content)
}

/** A server that opens every link and answers every request with `{}`, and does nothing else. */
async function startBare(t: Ending): Promise<{ url: string }> {
  const child = spawn(process.execPath, [bareProgram, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [port] = await once(createInterface({ input: child.stdout }), 'line')
  return { url: `http://127.0.0.1:${port}` }
}

class Fleet {
  readonly #identities: readonly Identity[]
  readonly #options: { pongs: boolean }
  readonly #connections: http.Agent[]
  readonly #stopping = new AbortController()
  #links: ScriptedAgent[] = []
  /** Milliseconds of each heartbeat. */
  latencies: number[] = []

  /** `pongs`: whether the server pings each new link, and it counts as up with its answer. */
  constructor(identities: readonly Identity[], options: { pongs: boolean }) {
    this.#identities = identities
    this.#options = options
    this.#connections = identities.map(() => new http.Agent({ keepAlive: true, maxSockets: 1 }))
  }

  /** Links of all agents, 100 at a time, each with a heartbeat. */
  async arrive(server: { url: string }): Promise<void> {
    for (let at = 0; at < agentCount; at += 100)
      await Promise.all(Array.from({ length: 100 }, (_, offset) => this.#come(server, at + offset)))
  }

  /** Links of all agents at once, each with a heartbeat, and then one every 10 s until `stop`. Rejects if one fails. */
  async storm(server: { url: string }): Promise<void> {
    this.#links = []
    this.latencies = []
    const { signal } = this.#stopping
    const coming = this.#identities.map(async (_, at) => {
      // Like agents: a quick retry after 0.2 to 1 s.
      await delay(200 + (800 * at) / agentCount)
      await this.#come(server, at)
      while (!signal.aborted) {
        await delay(10_000 * (0.5 + (at % 100) / 100))
        if (!signal.aborted) await this.#beat(server, at)
      }
    })
    await Promise.all(coming).catch((error) => {
      if (!signal.aborted) throw error
    })
  }

  stop(): void {
    this.#stopping.abort()
    for (const { socket } of this.#links) socket.terminate()
    for (const connection of this.#connections) connection.destroy()
  }

  async #come(server: { url: string }, at: number): Promise<void> {
    const identity = this.#identities[at] as Identity
    const options = { storeId: identity.agentId, ...this.#options }
    this.#links.push(await ScriptedAgent.link(server, identity, options))
    await this.#beat(server, at)
  }

  async #beat(server: { url: string }, at: number): Promise<void> {
    const [identity, connection] = [this.#identities[at] as Identity, this.#connections[at] as http.Agent]
    const beat = () => heartbeat(server, identity, connection)
    // Retry like an agent, because the server may have just closed the connection.
    this.latencies.push(await beat().catch(beat))
  }
}

/** The 99th percentile, with a text that also has number, median and longest. */
function summary(latencies: readonly number[]): { p99: number; text: string } {
  const sorted = latencies.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
  const [median, p99, longest] = [at(0.5), at(0.99), at(1)]
  const text = `${sorted.length} heartbeats, median ${median.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, longest ${longest.toFixed(1)} ms`
  return { p99, text }
}

test('F16 1,000 agents that reconnect at once after a restart are ONLINE within 60 s, never OFFLINE, with fast heartbeats', async (t) => {
  t.timeout(540_000)
  const server = await startServerProcess(t)
  const identities = await enrolled(server)
  const fleet = new Fleet(identities, { pongs: true })
  t.teardown(() => fleet.stop())
  await fleet.arrive(server)
  await server.restart()
  const began = performance.now()
  const failed = fleet.storm(server).then(() => [])
  const seen = new Set<string>()
  let allOnline = 0
  for (const until = performance.now() + 60_000; allOnline === 0 && performance.now() < until; ) {
    const hosts = await Promise.race([allHosts(server), failed])
    for (const { status } of hosts) seen.add(status)
    if (hosts.every(({ status, agent }) => status === 'ONLINE' && agent?.connected))
      allOnline = performance.now() - began
    await delay(500)
  }
  t.true(allOnline > 0, 'not all were ONLINE within 60 s')
  await delay(followed)
  for (const { status } of await allHosts(server)) seen.add(status)
  fleet.stop()
  const memory = await server.memory()
  await server.kill()

  const bare = new Fleet(identities, { pongs: false })
  t.teardown(() => bare.stop())
  bare.storm(await startBare(t)).catch((error) => t.fail(String(error)))
  await delay(followed)
  bare.stop()

  const [ours, baseline] = [summary(fleet.latencies), summary(bare.latencies)]
  t.log(
    `all ONLINE after ${Math.round(allOnline)} ms; ${ours.text}; server ${Math.round(memory)} MB; bare: ${baseline.text}`,
  )
  t.deepEqual([...seen], ['ONLINE'])
  t.true(ours.p99 < 3 * baseline.p99, `p99 ${ours.p99} ms, of a bare server ${baseline.p99} ms`)
})
