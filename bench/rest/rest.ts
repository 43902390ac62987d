import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BareFastify, startBareFastify } from '../bare/start-fastify.ts'
import { type BenchServer, startServer } from '../fleet/server.ts'
import { type Load, requestText, startLoad } from '../load/load.ts'
import { inTurn, ratioRow } from '../measure.ts'
import type { Row } from '../row.ts'
import { heartbeatText, type RegisteredAgent, registerAgents } from './register.ts'

const rounds = 13
const milliseconds = 700
const connections = 32
const fleetSize = 100
const largeFleetSize = 10_000
const heartbeatingAgents = 64
const page = '/api/hosts?size=20'

/** Requests per second to one port with one set of requests. */
function rateOf(load: Load, port: number, requests: string[]): () => Promise<number> {
  return async () => (await load.run({ port, requests, connections, milliseconds })).perSecond
}

const portOf = (server: BenchServer) => Number(new URL(server.url).port)

/** Adds a static cluster, and one whose members are looked up among all hosts. */
async function addClusters(server: BenchServer): Promise<void> {
  await server.call('POST', '/api/clusters', { name: 'first', hostIds: [1, 2, 3] })
  await server.call('POST', '/api/clusters', { name: 'web', selector: 'web*,@os:linux' })
}

async function allHosts(server: BenchServer): Promise<unknown[]> {
  const hosts: unknown[] = []
  for (let at = 0; ; at++) {
    const { content, totalPages } = await server.call('GET', `/api/hosts?size=500&page=${at}`)
    hosts.push(...(content as unknown[]))
    if (at + 1 >= Number(totalPages)) return hosts
  }
}

async function heartbeatRow(load: Load, bare: BareFastify, server: BenchServer, agents: RegisteredAgent[]) {
  const requests = agents.slice(0, heartbeatingAgents).map((agent) => heartbeatText(agent))
  const measured = await inTurn(
    rounds,
    rateOf(load, portOf(server), requests),
    rateOf(load, bare.port, requests),
  )
  return ratioRow('heartbeats, vs bare Fastify', 'requests/s', measured, { atLeast: 0.9 })
}

/** Requests per second of the real server vs bare Fastify with the same schemas, in separate processes (reliability L01). */
export async function benchRest(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-rest-'))
  const load = startLoad()
  const bare = await startBareFastify()
  const servers: BenchServer[] = []
  try {
    const small = await startServer(join(directory, 'small'), 'INFO')
    servers.push(small)
    const agents = await registerAgents(small, fleetSize)
    await addClusters(small)
    const rows = [await heartbeatRow(load, bare, small, agents)]

    const large = await startServer(join(directory, 'large'), 'INFO')
    servers.push(large)
    await registerAgents(large, largeFleetSize)
    await addClusters(large)
    await bare.serve(await allHosts(large))
    const [ofSmall, ofLarge] = [small, large].map((server) => [requestText('GET', page, server.token)]) as [
      string[],
      string[],
    ]
    const largeRate = rateOf(load, portOf(large), ofLarge)
    // Nullable fields make the serializer of a response schema slower than JSON.stringify, so both are measured.
    for (const [how, path] of [
      ['with a response schema', page],
      ['that stringifies', page.replace('/api/', '/stringified/')],
    ] as const) {
      const bareRate = rateOf(load, bare.port, [requestText('GET', path, large.token)])
      const name = `GET ${page} of ${largeFleetSize} hosts, vs bare Fastify ${how}`
      rows.push(ratioRow(name, 'requests/s', await inTurn(rounds, largeRate, bareRate), { atLeast: 0.7 }))
    }
    const sizes = await inTurn(rounds, largeRate, rateOf(load, portOf(small), ofSmall))
    rows.push(
      ratioRow(`GET ${page} of ${largeFleetSize} hosts, vs ${fleetSize} hosts`, 'requests/s', sizes, {
        atLeast: 0.8,
      }),
    )
    return rows
  } finally {
    load.stop()
    bare.stop()
    await Promise.all(servers.map((server) => server.stop()))
    await rm(directory, { recursive: true, force: true })
  }
}
