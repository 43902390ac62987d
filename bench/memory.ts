import { spawn } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import type { Fleet } from './fleet/fleet.ts'
import { median, residentMB } from './measure.ts'
import type { Row } from './row.ts'

const settle = 15_000
const agentBound = 25
const serverBound = 150

/** Resident memory at idle; measure before the fleet has worked (reliability L01). */
export async function benchMemory(fleet: Fleet): Promise<Row[]> {
  const bare = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' })
  await setTimeout(settle)
  const node = residentMB(bare.pid)
  bare.kill('SIGKILL')
  const agent = median(fleet.agents.map(({ pid }) => residentMB(pid)))
  const server = residentMB(fleet.child.pid)
  return [
    {
      name: 'an idle agent, vs bare Node',
      ours: agent,
      baseline: node,
      unit: 'MB',
      ratio: agent / node,
      goal: `≤ +${agentBound} MB`,
      met: agent - node <= agentBound,
    },
    {
      name: `a server with ${fleet.agents.length} idle agents, vs bare Node`,
      ours: server,
      baseline: node,
      unit: 'MB',
      ratio: server / node,
      goal: `≤ ${serverBound} MB`,
      met: server <= serverBound,
    },
  ]
}
