import { setTimeout as delay } from 'node:timers/promises'
import { Gauge, type Registry } from 'prom-client'
import { RsmError } from '../../core/errors.ts'
import type { HostStatus } from '../../core/hosts/host.ts'
import type { Standing } from '../../core/protocol/http/server.ts'
import type { Room } from '../../disk/durable.ts'
import type { PoolLoad } from '../storage/ports/cluster.ts'

/** Values read at each scrape. */
export interface Counted {
  version: string
  /** Hosts by displayed status, including statuses without hosts. */
  hosts(): Promise<Readonly<Record<HostStatus | 'NO_LINK', number>>>
  /** Running tasks, executions in progress, executions waiting for their host. */
  work(): Promise<{ tasks: number; running: number; waiting: number }>
  /** Agent links, and bytes of their frames not yet processed. */
  links(): { open: number; backlogBytes: number }
  terminals(): { open: number }
  /** Writes queued for the journal. */
  journalQueue(): number
  /** Passwords queued to be checked. */
  loginQueue(): number
  /** File system of the data directory; null if it does not respond. */
  room(): Promise<Room | null>
  readOnly(): boolean
  auditRefused(): boolean
  /** Deliveries pending for this server's webhooks. */
  deliveries(): number
  /** Null if the store is not shared. */
  shared(): SharedLoad | null
}

interface SharedLoad extends Standing {
  hasFault: boolean
}

export function registerGauges(registry: Registry, counted: Counted): void {
  const { gauge, gauges } = polledGauges(registry)
  const room = async (part: keyof Room) => (await counted.room())?.[part] ?? null

  gauges('rsm_build_info', 'Always 1; the version is in the label.', 'version', async () => ({
    [counted.version]: 1,
  }))
  gauges('rsm_hosts', 'Hosts by status.', 'status', () => counted.hosts())
  gauge('rsm_agent_links', 'Open WebSockets of agents.', () => counted.links().open)
  gauge(
    'rsm_frame_backlog_bytes',
    'Agent frames received but not yet processed.',
    () => counted.links().backlogBytes,
  )
  gauges('rsm_tasks', 'Tasks that have not ended.', 'status', async () => ({
    RUNNING: (await counted.work()).tasks,
  }))
  gauges('rsm_executions', 'Executions sent to their host that have not ended.', 'status', async () => ({
    RUNNING: (await counted.work()).running,
  }))
  gauge('rsm_terminals', 'Open terminal sessions.', () => counted.terminals().open)
  gauges(
    'rsm_queue_length',
    'Journal writes, executions waiting for their host, and logins waiting for their password check.',
    'queue',
    async () => ({
      journal: counted.journalQueue(),
      executions: (await counted.work()).waiting,
      logins: counted.loginQueue(),
    }),
  )
  gauge('rsm_disk_size_bytes', 'Size of the file system of the data directory.', () => room('size'))
  gauge('rsm_disk_available_bytes', 'Space there that the server may use.', () => room('available'))
  gauge('rsm_store_read_only', '1 while the store refuses writes, as on a full disk.', () =>
    counted.readOnly() ? 1 : 0,
  )
  gauge('rsm_audit_refused', '1 while the audit log refuses entries, and so every change is refused.', () =>
    counted.auditRefused() ? 1 : 0,
  )
  gauge('rsm_webhook_deliveries_waiting', 'Events pending for the webhooks of this server.', () =>
    counted.deliveries(),
  )
  registerShared(registry, () => counted.shared())
}

/** Registers the gauges of a server on a shared store; `read` returns null otherwise. */
function registerShared(registry: Registry, read: () => SharedLoad | null): void {
  const { gauge, gauges } = polledGauges(registry)
  const poolsBy = (part: keyof PoolLoad) => () => {
    const pools = read()?.pools
    return pools ? Object.fromEntries(Object.entries(pools).map(([pool, its]) => [pool, its[part]])) : null
  }
  gauges(
    'rsm_server_info',
    'Always 1; the name of this server is in the label; only with --store.',
    'name',
    () => {
      const shared = read()
      return shared && { [shared.name]: 1 }
    },
  )
  gauge('rsm_store_fault', '1 while PostgreSQL cannot be reached; only with --store.', () => {
    const shared = read()
    return shared && Number(shared.hasFault)
  })
  gauge(
    'rsm_lease_seconds',
    'Time until other servers may take over the tasks and links of this one; only with --store.',
    () => read()?.leaseSeconds ?? null,
  )
  gauges(
    'rsm_store_connections',
    'Connections to PostgreSQL in use, by pool; only with --store.',
    'pool',
    poolsBy('busy'),
  )
  gauges(
    'rsm_store_waiting',
    'Calls waiting for a connection to PostgreSQL, by pool; only with --store.',
    'pool',
    poolsBy('waiting'),
  )
  gauge(
    'rsm_hint_lag_seconds',
    'Round trip of a hint from this server through PostgreSQL; only with --store.',
    () => read()?.hints.lagSeconds ?? null,
  )
}

/** Null if unknown: the gauge is then omitted. */
type Value = number | null
type Series = Readonly<Record<string, number>>

/** Milliseconds to wait for a gauge: half of Prometheus' default `scrape_timeout`. */
const readTimeout = 5_000

/** Gauges that are read at each scrape. */
export function polledGauges(registry: Registry, patience = readTimeout) {
  const registers = [registry]
  return {
    gauge: (name: string, help: string, read: () => Value | Promise<Value>) =>
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          const value = await ifReached(read, patience)
          if (value === null) this.remove()
          else this.set(value)
        },
      }),
    /** One series per value of the label; none if unknown. */
    gauges: (name: string, help: string, label: string, read: () => Series | null | Promise<Series | null>) =>
      new Gauge({
        name,
        help,
        registers,
        labelNames: [label],
        async collect() {
          const all = await ifReached(read, patience)
          if (all === null) this.reset()
          for (const [series, value] of Object.entries(all ?? {})) this.set({ [label]: series }, value)
        },
      }),
  }
}

/** Returns null if the store is unreachable or slow, so that the scrape can report that. */
async function ifReached<T>(read: () => T | Promise<T>, patience: number): Promise<T | null> {
  const controller = new AbortController()
  try {
    return await Promise.race([read(), delay(patience, null, { signal: controller.signal })])
  } catch (error) {
    if (error instanceof RsmError && error.code === 'unavailable') return null
    throw error
  } finally {
    controller.abort()
  }
}
