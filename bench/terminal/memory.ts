import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Fleet } from '../fleet/fleet.ts'
import { residentMB } from '../measure.ts'
import type { Row } from '../row.ts'
import { type Pair, prompt } from './pair.ts'

/** Milliseconds until garbage of the start-up has been collected. */
const settle = 5_000
const sampleEvery = 20
const floods = 3
const growthBound = 32

/** The only process that an agent has started for its terminals. */
function childOf(pid: number | undefined): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
  return Number(child)
}

/** Growth of each process while a terminal is flooded. */
export async function benchMemory(fleet: Fleet, { ours, cat }: Pair): Promise<Row[]> {
  const agent = fleet.agents[0]?.pid
  const processes = [
    { name: 'server', pid: fleet.child.pid },
    { name: 'agent', pid: agent },
    { name: "agent's terminal process", pid: childOf(agent) },
  ]
  await setTimeout(settle)
  const memory = processes.map(({ name, pid }) => ({ name, pid, idle: residentMB(pid), peak: 0 }))
  const watch = setInterval(() => {
    for (const one of memory) one.peak = Math.max(one.peak, residentMB(one.pid))
  }, sampleEvery)
  try {
    for (let flood = 0; flood < floods; flood++) await ours.answer(cat, prompt)
  } finally {
    clearInterval(watch)
  }
  return memory.map(({ name, idle, peak }) => ({
    name: `terminal: RSS of the ${name} during a flood, vs idle`,
    unit: 'MB',
    ours: peak,
    baseline: idle,
    ratio: peak / idle,
    spread: `+${(peak - idle).toFixed(0)} MB`,
    goal: `≤ +${growthBound} MB`,
    met: peak - idle <= growthBound,
  }))
}
