import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { skipReasons, slotOutcomes } from '../../core/schedules/decide.ts'
import { gateStatuses } from '../../core/tasks/gates.ts'
import type { LocalFacts } from '../storage/local-facts.ts'

const seconds = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400]
const results = ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'SKIPPED', 'UNREACHABLE', 'LOST']
const deliveryOutcomes = ['delivered', 'failed', 'gave_up']
const taskEnds = ['SUCCESS', 'FAILED', 'CANCELLED']

/** Counts executions, gates, tasks, schedule slots, webhook deliveries, file bytes and event streams. */
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
    help: 'Run time on the host, without results that never started.',
    buckets: seconds,
    labelNames: ['result'],
    registers,
  })
  const gates = new Counter({
    name: 'rsm_gates_total',
    help: 'Verifications and rollbacks that ended since the start of this server, one for each host.',
    labelNames: ['phase', 'result'],
    registers,
  })
  const tasks = new Counter({
    name: 'rsm_tasks_total',
    help: 'Tasks that ended since the start of this server.',
    labelNames: ['status'],
    registers,
  })
  const slots = new Counter({
    name: 'rsm_schedule_slots_total',
    help: 'Slots of schedules that this server has run or skipped since its start; FAILED: no task could be created.',
    labelNames: ['outcome'],
    registers,
  })
  const skipped = new Counter({
    name: 'rsm_schedule_skipped_total',
    help: 'Slots of schedules that this server has skipped since its start, by reason.',
    labelNames: ['why'],
    registers,
  })
  const lateness = new Histogram({
    name: 'rsm_schedule_late_seconds',
    help: 'Delay of a slot after its planned time, jitter included.',
    buckets: seconds,
    registers,
  })
  const streams = new Gauge({
    name: 'rsm_event_streams',
    help: 'Clients following a stream of events, by route.',
    labelNames: ['route'],
    registers,
  })
  const deliveries = new Counter({
    name: 'rsm_webhook_deliveries_total',
    help: 'Attempts to deliver an event to a webhook, and deliveries given up.',
    labelNames: ['outcome'],
    registers,
  })
  const unprovenMarks = new Counter({
    name: 'rsm_agent_marks_unproven_total',
    help: 'Marks ahead of the store with a missing or invalid MAC; they hold no work.',
    registers,
  })
  const fileBytes = new Counter({
    name: 'rsm_file_bytes_total',
    help: 'Bytes of files for and from hosts, received or sent.',
    labelNames: ['direction'],
    registers,
  })
  // Start at 0, so that rates include the first increment.
  for (const result of results) executions.inc({ result }, 0)
  for (const outcome of deliveryOutcomes) deliveries.inc({ outcome }, 0)
  for (const direction of ['in', 'out']) fileBytes.inc({ direction }, 0)
  for (const status of taskEnds) tasks.inc({ status }, 0)
  for (const outcome of slotOutcomes) slots.inc({ outcome }, 0)
  for (const why of skipReasons) skipped.inc({ why }, 0)
  for (const phase of ['VERIFY', 'ROLLBACK'])
    for (const result of gateStatuses) gates.inc({ phase, result }, 0)

  facts.subscribe('taskEnded', ({ status }) => tasks.inc({ status }))
  facts.subscribe('slot', ({ slot: { outcome, count, why }, late }) => {
    slots.inc({ outcome }, count ?? 1)
    if (why !== null) skipped.inc({ why }, count ?? 1)
    if (late !== null) lateness.observe(Math.max(0, late) / 1000)
  })
  facts.subscribe('resultFinal', ({ status: result, duration: milliseconds, verify, rollback }) => {
    executions.inc({ result })
    if (verify) gates.inc({ phase: 'VERIFY', result: verify.status })
    if (rollback) gates.inc({ phase: 'ROLLBACK', result: rollback.status })
    if (milliseconds !== null) duration.observe({ result }, milliseconds / 1000)
  })
  facts.subscribe('unprovenMark', () => unprovenMarks.inc())
  facts.subscribe('fileBytes', ({ direction, bytes }) => fileBytes.inc({ direction }, bytes))
  facts.subscribe('webhook', ({ outcome, count }) => deliveries.inc({ outcome }, count))
  facts.subscribe('stream', ({ route, opened }) => streams.inc({ route }, opened ? 1 : -1))
}
