import { isFinal } from '../../core/task/task-state.ts'
import type { Bus } from '../bus.ts'
import { Counter } from './counter.ts'
import type { Family, Sample } from './family.ts'
import { Histogram } from './histogram.ts'

const seconds = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400]
const results = ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'SKIPPED', 'UNREACHABLE', 'LOST']
const taskEnds = ['SUCCESS', 'FAILED', 'CANCELLED']

/** What the bus tells of: executions and tasks that end, and streams of events that clients follow. */
export function createWorkMetrics(bus: Bus): { families: readonly Family[] } {
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

  bus.subscribe('task', null, ({ change }) => {
    if (change.kind === 'task') {
      if (change.ended) tasks.of({ status: change.ended }).add()
      return
    }
    const { status: result, duration: milliseconds } = change.result
    if (!isFinal(result)) return
    executions.of({ result }).add()
    if (milliseconds !== null) duration.of({ result }).observe(milliseconds / 1000)
  })
  return { families: [executions, duration, tasks, streamGauge(bus)] }
}

function streamGauge(bus: Bus): Family {
  const open = new Map<string, number>()
  bus.subscribe('stream', null, ({ route, opened }) => {
    open.set(route, (open.get(route) ?? 0) + (opened ? 1 : -1))
  })
  return {
    name: 'rsm_event_streams',
    help: 'Clients that follow a stream of events now, by route.',
    type: 'gauge',
    samples: (): Sample[] => [...open].map(([route, value]) => ({ labels: { route }, value })),
  }
}
