import { patiently } from '../fleet/patiently.ts'
import type { BenchServer } from '../fleet/server.ts'
import { requestText } from '../load/load.ts'

const atOnce = 64
const mostUses = 100_000

export interface RegisteredAgent {
  agentId: string
  token: string
}

/** Registers this number of agents over REST, as they register themselves; each has sent a heartbeat and its metrics. */
export async function registerAgents(server: BenchServer, count: number): Promise<RegisteredAgent[]> {
  const enrolling = () => server.call('POST', '/api/enrollment-tokens', { maxUses: mostUses })
  const { token } = await patiently(enrolling)
  const agents: RegisteredAgent[] = []
  let next = 0
  async function work(): Promise<void> {
    while (next < count) {
      const index = next++
      const agentId = `agent-${String(index).padStart(6, '0')}`
      const facts = {
        os: 'linux',
        kernel: '6.1.0-18-amd64',
        arch: 'x64',
        cpuCores: 8,
        memoryMB: 32_000,
        diskGB: 500,
      }
      const registered = await post(server, String(token), '/api/agent/register', {
        agentId,
        hostname: `web${index}.example.org`,
        ipAddresses: [`10.1.${index >> 8}.${index & 255}`],
        agentVersion: '0.1.0',
        ...facts,
      })
      const agent = { agentId, token: String(registered['token']) }
      await post(server, agent.token, '/api/agent/heartbeat', heartbeat(agent))
      await post(server, agent.token, '/api/agent/metrics', { agentId, ...metrics() })
      agents[index] = agent
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return agents
}

/** The heartbeat of a host that booted in 1970: the boot time that it implies is always the same. */
export function heartbeat({ agentId }: RegisteredAgent) {
  const now = Date.now()
  return {
    agentId,
    timestamp: new Date(now).toISOString(),
    status: 'HEALTHY',
    uptime: Math.floor(now / 1000),
  }
}

export function heartbeatText(agent: RegisteredAgent): string {
  return requestText('POST', '/api/agent/heartbeat', agent.token, heartbeat(agent))
}

function metrics() {
  return {
    timestamp: new Date().toISOString(),
    cpu: { usagePercent: 12.5, loadAvg1m: 0.5, loadAvg5m: 0.4, loadAvg15m: 0.3 },
    memory: { totalMB: 32_000, usedMB: 12_000, availableMB: 20_000, usagePercent: 37.5 },
    disk: [
      { mountPoint: '/', totalGB: 100, usedGB: 40, usagePercent: 40 },
      { mountPoint: '/var', totalGB: 400, usedGB: 100, usagePercent: 25 },
    ],
    network: { rxBytesPerSec: 120_000, txBytesPerSec: 80_000, connections: 120 },
  }
}

/** A registration may be repeated with the same token (contract §3). */
const post = (...asked: Parameters<typeof postOnce>) => patiently(() => postOnce(...asked))

async function postOnce(server: BenchServer, token: string, path: string, body: unknown) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  })
  const { data, message } = (await response.json()) as { data?: Record<string, unknown>; message: string }
  if (!data) throw new Error(`POST ${path}: ${message}`)
  return data
}
