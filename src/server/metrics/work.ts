import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { LocalFacts } from '../local-facts.ts'

const seconds = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400]
const results = ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'SKIPPED', 'UNREACHABLE', 'LOST']
const taskEnds = ['SUCCESS', 'FAILED', 'CANCELLED']

/** Counts executions and tasks that end, and streams of events that clients follow. */
export function countWork(registry: Registry, facts: LocalFacts): void {
  const registers = [registry]
  const executions = new Counter({
    name: 'rsm_executions_total',
    help: 'Results that became final since the start of this server, one for each host of a task.',
    labelNames: ['result'],
    registers,
  })
  const duration = new Histogram({
    name: 'rsm_execution_duration_seconds',
    help: 'Run time on the host; results that never started are not in it.',
    buckets: seconds,
    labelNames: ['result'],
    registers,
  })
  const tasks = new Counter({
    name: 'rsm_tasks_total',
    help: 'Tasks that ended since the start of this server.',
    labelNames: ['status'],
    registers,
  })
  const streams = new Gauge({
    name: 'rsm_event_streams',
    help: 'Clients that follow a stream of events now, by route.',
    labelNames: ['route'],
    registers,
  })
  // Shown as 0 from the start, so that rates see their first step.
  for (const result of results) executions.inc({ result }, 0)
  for (const status of taskEnds) tasks.inc({ status }, 0)

  facts.subscribe('taskEnded', ({ status }) => tasks.inc({ status }))
  facts.subscribe('resultFinal', ({ status: result, duration: milliseconds }) => {
    executions.inc({ result })
    if (milliseconds !== null) duration.observe({ result }, milliseconds / 1000)
  })
  facts.subscribe('stream', ({ route, opened }) => streams.inc({ route }, opened ? 1 : -1))
}
