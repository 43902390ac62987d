import type { LocalFacts } from '../local-facts.ts'
import { Counter } from './counter.ts'
import type { Family, Sample } from './family.ts'
import { Histogram } from './histogram.ts'

const seconds = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400]
const results = ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'SKIPPED', 'UNREACHABLE', 'LOST']
const taskEnds = ['SUCCESS', 'FAILED', 'CANCELLED']

/** Executions and tasks that end, and streams of events that clients follow. */
export function createWorkMetrics(facts: LocalFacts): { families: readonly Family[] } {
  const executions = new Counter(
    'rsm_executions_total',
    'Results that became final since the start of this server, one for each host of a task.',
    ['result'],
  )
  const duration = new Histogram(
    'rsm_execution_duration_seconds',
    'Run time on the host; results that never started are not in it.',
    seconds,
    ['result'],
  )
  const tasks = new Counter('rsm_tasks_total', 'Tasks that ended since the start of this server.', ['status'])
  for (const result of results) executions.of({ result })
  for (const status of taskEnds) tasks.of({ status })

  facts.subscribe('taskEnded', ({ status }) => tasks.of({ status }).add())
  facts.subscribe('resultFinal', ({ status: result, duration: milliseconds }) => {
    executions.of({ result }).add()
    if (milliseconds !== null) duration.of({ result }).observe(milliseconds / 1000)
  })
  return { families: [executions, duration, tasks, streamGauge(facts)] }
}

function streamGauge(facts: LocalFacts): Family {
  const open = new Map<string, number>()
  facts.subscribe('stream', ({ route, opened }) => {
    open.set(route, (open.get(route) ?? 0) + (opened ? 1 : -1))
  })
  return {
    name: 'rsm_event_streams',
    help: 'Clients that follow a stream of events now, by route.',
    type: 'gauge',
    samples: (): Sample[] => [...open].map(([route, value]) => ({ labels: { route }, value })),
  }
}
