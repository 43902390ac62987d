import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Fleet } from '../fleet/fleet.ts'
import { residentMB } from '../measure.ts'
import type { Row } from '../row.ts'
import { type Pair, prompt } from './pair.ts'

/** Milliseconds: what start-up left behind has been collected by then. */
const settle = 5_000
const sampleEvery = 20
const floods = 3
const growthBound = 32

/** The one process that an agent has started for its terminals. */
function childOf(pid: number | undefined): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
  return Number(child)
}

/** What each process grows by while a terminal is flooded. */
export async function benchMemory(fleet: Fleet, { ours, cat }: Pair): Promise<Row[]> {
  const agent = fleet.agents[0]?.pid
  const processes = [
    { name: 'server', pid: fleet.child.pid },
    { name: 'agent', pid: agent },
    { name: "agent's process of terminals", pid: childOf(agent) },
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
    name: `terminal: RSS of the ${name} meanwhile, beside idle`,
    unit: 'MB',
    ours: peak,
    baseline: idle,
    ratio: peak / idle,
    spread: `+${(peak - idle).toFixed(0)} MB`,
    goal: `≤ +${growthBound} MB`,
    met: peak - idle <= growthBound,
  }))
}
