import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { skipReasons, slotOutcomes } from '../../core/schedules/decide.ts'
import { gateStatuses } from '../../core/tasks/gates.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import { type Counted, registerGauges } from './gauges.ts'

/** Prometheus metrics of one server (contract §3 `GET /metrics`). */
export interface ServerMetrics {
  answered: HttpMetrics['answered']
  journalSynced: DiskMetrics['journalSynced']
  outputSynced: DiskMetrics['outputSynced']
  /** Returns a function that renders a scrape. Call once, when everything it counts exists. */
  exposition(counted: Counted): () => Promise<string>
}

export function createServerMetrics(facts: LocalFacts): ServerMetrics {
  const registry = new Registry()
  const { answered } = createHttpMetrics(registry)
  countWork(registry, facts)
  return {
    answered,
    ...createDiskMetrics(registry),
    exposition(counted) {
      registerGauges(registry, counted)
      let isWatched = false
      return () => {
        // Collected from the first scrape on, because it has a cost.
        if (!isWatched) watchProcess(registry)
        isWatched = true
        return registry.metrics()
      }
    },
  }
}

/** Metrics that are not worth their cost, or break Prometheus' naming rules (a gauge ending in `_total`). */
const unwanted = [
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'nodejs_active_resources',
  'nodejs_active_resources_total',
  'nodejs_heap_space_size_total_bytes',
  'nodejs_heap_space_size_used_bytes',
  'nodejs_heap_space_size_available_bytes',
]

/** Starts collecting CPU, memory, files, event loop and garbage collection of this process. */
function watchProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry })
  for (const name of unwanted) registry.removeSingleMetric(name)
}

const syncBuckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]

interface DiskMetrics {
  journalSynced: (seconds: number) => void
  outputSynced: (seconds: number, bytes: number) => void
}

/** Measures fsyncs, the minimum latency of an acknowledged write. */
function createDiskMetrics(registry: Registry): DiskMetrics {
  const registers = [registry]
  const journal = new Histogram({
    name: 'rsm_journal_fsync_seconds',
    help: "Time of an fsync of the store's journal.",
    buckets: syncBuckets,
    registers,
  })
  const output = new Histogram({
    name: 'rsm_output_fsync_seconds',
    help: "Time of an fsync of a task's output log.",
    buckets: syncBuckets,
    registers,
  })
  const bytes = new Counter({
    name: 'rsm_output_bytes_total',
    help: 'Output of scripts that became durable since the start.',
    registers,
  })
  return {
    journalSynced: (time) => journal.observe(time),
    outputSynced(time, size) {
      output.observe(time)
      bytes.inc(size)
    },
  }
}

/** Other methods count as `other`, because clients must not determine the number of series. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const requestBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]

interface Answered {
  method: string
  /** Route template, never the path; undefined if no route matches. */
  route: string | undefined
  status: number
  seconds: number
}

export interface HttpMetrics {
  answered: (request: Answered) => void
}

/** Requests by method, route template and status; the application bounds the number of series. */
export function createHttpMetrics(registry: Registry): HttpMetrics {
  const labels = { labelNames: ['method', 'route', 'status'] as const, registers: [registry] }
  const total = new Counter({
    name: 'rsm_http_requests_total',
    help: 'HTTP requests answered.',
    ...labels,
  })
  const duration = new Histogram({
    name: 'rsm_http_request_duration_seconds',
    help: 'Time from request to answer; a followed stream counts when it ends.',
    buckets: requestBuckets,
    ...labels,
  })
  return {
    answered({ method, route = 'unknown', status, seconds }) {
      const series = { method: methods.has(method) ? method : 'other', route, status }
      total.inc(series)
      duration.observe(series, seconds)
    },
  }
}

const runBuckets = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400]
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
    buckets: runBuckets,
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
    buckets: runBuckets,
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
