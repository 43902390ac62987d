import type { Directory } from '../../core/selector/directory.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { parseSelector } from '../../core/selector/parse.ts'
import { resolveInSlices } from '../../core/selector/resolve.ts'
import { hasId } from '../../core/tasks/id-set.ts'
import { isFailure } from '../../core/tasks/task.ts'
import type { EventData, WebhookEvent } from '../../core/webhooks/webhook.ts'
import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import { type Fleet, runInSlices } from '../hosts/fleet.ts'
import { deliveryOf, wantsIt } from '../storage/new-delivery.ts'
import type { ExecutionReads } from '../storage/ports/executions.ts'
import type { Store, Transaction } from '../storage/ports/store.ts'
import type { ScheduleRecord } from '../storage/records/schedule.ts'
import type { TaskRecord } from '../storage/records/task.ts'
import type { WebhookRecord } from '../storage/records/webhook.ts'
import { type Origin, passes } from './filters.ts'

export type Webhook = Readonly<WebhookRecord>

/** Hosts matched by selectors, by webhook id; webhooks without a selector, for all hosts, have no entry. */
export type Reach = ReadonlyMap<number, ReadonlySet<number>>

/** Writes events for webhooks in the transaction that causes them (contract §16). */
export interface WebhookEvents {
  /** All webhooks, at most a second behind changes by other servers. */
  all(): readonly Webhook[]
  /** Whether an enabled webhook wants one of these; if not, callers can skip preparing `write`. */
  wants(...types: readonly WebhookEvent[]): boolean
  /** Resolves the selectors of all webhooks; call before a transaction that writes an event about hosts. */
  reach(): Promise<Reach>
  /**
   * Writes the event once for each enabled webhook that wants it. `about`: hosts for the selectors, or the
   * schedule for the other filters; without it, every webhook of the type gets the event.
   */
  write(
    tx: Pick<Transaction, 'put'>,
    type: WebhookEvent,
    data: EventData,
    about?: { reach: Reach; hostIds: readonly number[] } | { schedule: ScheduleRecord },
  ): void
  writeTo(tx: Pick<Transaction, 'put'>, webhook: Webhook, type: WebhookEvent, data: EventData): void
  /** Prepares the events for the end of a task whose hosts have all ended; null if no webhook wants them. */
  endOfTask(taskId: string): Promise<((tx: Pick<Transaction, 'put'>, ended: TaskRecord) => void) | null>
  /** Resolves when changes made before the call are loaded. */
  known(): Promise<void>
}

export async function createWebhookEvents({
  store,
  executions,
  fleet,
  publicUrl = null,
  clock,
  log,
}: {
  store: Store
  executions: ExecutionReads
  fleet: Pick<Fleet, 'directory'>
  /** URL of the console (`--public-url`); null: events have no URL. */
  publicUrl?: string | null
  clock: Clock
  log: Log
}): Promise<WebhookEvents> {
  let webhooks: readonly Webhook[] = []
  let reading: Promise<void> | null = null
  let isStale = true

  async function readWhileStale(): Promise<void> {
    while (isStale) {
      isStale = false
      try {
        webhooks = (await store.query('webhooks')).items
      } catch (error) {
        isStale = true
        throw error
      }
    }
  }
  function known(): Promise<void> {
    reading ??= readWhileStale().finally(() => {
      reading = null
    })
    return reading
  }
  store.watch('webhooks', () => {
    isStale = true
    known().catch((error: unknown) => log.warn({ err: error }, 'webhooks could not be read; trying again'))
  })
  await known()

  /** Cache of resolved selectors, valid as long as the fleet is unchanged. */
  const named = new WeakMap<Directory, Map<string, Promise<ReadonlySet<number>>>>()

  async function selected(selector: string, directory: Directory): Promise<ReadonlySet<number>> {
    const hosts = await runInSlices(
      resolveInSlices(parseSelector(selector), directory, { strictness: 'none' }),
    )
    return new Set(hosts.map(({ id }) => id))
  }

  const wanting = (type: WebhookEvent) => webhooks.filter((webhook) => wantsIt(webhook, type))
  const wants = (...types: readonly WebhookEvent[]) => types.some((type) => wanting(type).length > 0)

  async function reach(): Promise<Reach> {
    const sets = new Map<number, ReadonlySet<number>>()
    if (webhooks.every(({ selector }) => selector === null)) return sets
    const directory = await fleet.directory()
    const known = named.get(directory) ?? new Map<string, Promise<ReadonlySet<number>>>()
    named.set(directory, known)
    for (const { id, selector } of webhooks) {
      if (selector === null) continue
      const hosts = known.get(selector) ?? selected(selector, directory)
      known.set(selector, hosts)
      try {
        sets.set(id, await hosts)
      } catch (error) {
        log.warn({ err: error, webhookId: id }, 'the selector of a webhook fails: it matches no host')
        sets.set(id, new Set())
      }
    }
    return sets
  }

  const put = (tx: Pick<Transaction, 'put'>, webhook: Webhook, event: WebhookEvent, data: EventData) =>
    tx.put('deliveries', deliveryOf(webhook, event, withUrl(data, publicUrl), clock.now()))

  return {
    all: () => webhooks,
    wants,
    reach,
    known,
    write(tx, type, data, about) {
      for (const webhook of wanting(type)) {
        if (about && 'schedule' in about) {
          if (!passes(webhook, originOf(about.schedule))) continue
        } else {
          const names = about?.reach.get(webhook.id) ?? null
          if (names !== null && !about?.hostIds.some((id) => names.has(id))) continue
        }
        put(tx, webhook, type, data)
      }
    },
    writeTo(tx, webhook, type, data) {
      if (wantsIt(webhook, type)) put(tx, webhook, type, data)
    },
    async endOfTask(taskId) {
      if (!wants('task.failed', 'task.ended')) return null
      const task = await store.get('tasks', taskId)
      const { scheduleId } = task ?? {}
      const schedule = scheduleId === undefined ? undefined : await store.get('schedules', scheduleId)
      const failed = (await executions.page(taskId)).flatMap(({ execution: { status, hostname } }) =>
        isFailure(status) ? [hostname] : [],
      )
      const sets = await reach()
      return (tx, ended) => {
        const data = dataOf(ended, schedule?.name ?? null, failed)
        const origin = originOfTask(ended, schedule?.name ?? null)
        const isFailed = ended.status === 'FAILED'
        for (const type of isFailed ? (['task.failed', 'task.ended'] as const) : (['task.ended'] as const))
          for (const webhook of wanting(type))
            if (concerns(ended, sets.get(webhook.id) ?? null) && passes(webhook, origin))
              put(tx, webhook, type, data)
      }
    },
  }
}

/** Whether the task ran on one of the hosts; true for records of older servers, which lack the hosts. */
function concerns({ hostSet }: TaskRecord, names: ReadonlySet<number> | null): boolean {
  if (names === null || hostSet === undefined) return true
  for (const id of names) if (hasId(hostSet, id)) return true
  return false
}

const originOf = ({ id, name, scriptId, ownerId, owner }: ScheduleRecord): Origin => ({
  schedule: { id, name },
  script: scriptId === null ? null : { id: scriptId, name: null },
  createdBy: { id: ownerId, name: owner },
})

const originOfTask = (
  { scheduleId, scriptId, scriptName, createdById, createdBy }: TaskRecord,
  scheduleName: string | null,
): Origin => ({
  schedule: scheduleId === undefined ? null : { id: scheduleId, name: scheduleName },
  script: scriptId === null ? null : { id: scriptId, name: scriptName },
  createdBy: { id: createdById, name: createdBy },
})

const longestNodes = 1024

/** Node set of the hosts, or of the first ones if too long. */
function nodesOf(hostnames: readonly string[]): string {
  for (let count = hostnames.length; ; count = Math.floor(count / 2)) {
    const nodes = foldNodeset(hostnames.slice(0, count))
    if (nodes.length <= longestNodes || count <= 1) return nodes
  }
}

/** Data about a task; excludes its script and params, which may hold secrets. */
function dataOf(task: TaskRecord, schedule: string | null, failed: readonly string[]): EventData {
  const { id, status, type, scriptName, createdBy, hostCount, completedAt, duration } = task
  const counts = Object.fromEntries(Object.entries(task.counts ?? {}).filter(([, count]) => count > 0))
  return {
    taskId: id,
    status,
    type,
    script: scriptName,
    createdBy,
    scheduleId: task.scheduleId ?? null,
    schedule,
    hostCount,
    counts,
    nodes: nodesOf(failed),
    count: failed.length,
    completedAt,
    duration,
  }
}

function pageOf({ taskId, scheduleId, hostId, nodes }: EventData): string | null {
  if (typeof taskId === 'string') return `tasks/${taskId}`
  if (typeof scheduleId === 'number') return `schedules/${scheduleId}`
  return typeof hostId === 'number' || typeof nodes === 'string' ? 'hosts' : null
}

function withUrl(data: EventData, publicUrl: string | null): EventData {
  const page = publicUrl === null ? null : pageOf(data)
  return page === null ? data : { ...data, url: `${publicUrl}/#/${page}` }
}
