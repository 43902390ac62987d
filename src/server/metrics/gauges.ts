import { setTimeout as delay } from 'node:timers/promises'
import { Gauge, type Registry } from 'prom-client'
import { RsmError } from '../../core/errors.ts'
import type { HostStatus } from '../../core/hosts/host.ts'
import type { Standing } from '../../core/protocol/http/server.ts'
import type { Room } from '../../disk/disk.ts'
import type { PoolLoad } from '../storage/ports/cluster.ts'

/** Values that are counted when a scrape asks for them. */
export interface Counted {
  version: string
  /** Hosts by the status that is shown, every status named. */
  hosts(): Promise<Readonly<Record<HostStatus | 'NO_LINK', number>>>
  /** Tasks that run, executions that were sent and have no end, and executions that wait for their host. */
  work(): Promise<{ tasks: number; running: number; waiting: number }>
  /** Agent links, and bytes of their frames that are not dealt with. */
  links(): { open: number; backlogBytes: number }
  /** Terminal sessions. */
  terminals(): { open: number }
  /** Writes that wait for the journal. */
  journalQueue(): number
  /** Passwords that wait to be checked. */
  loginQueue(): number
  /** The file system of the data directory; null where it gives no answer. */
  room(): Promise<Room | null>
  readOnly(): boolean
  auditRefused(): boolean
  /** Deliveries that wait for the webhooks of this server. */
  deliveries(): number
  /** Null where the store is this server's alone. */
  shared(): SharedLoad | null
}

/** A server on a store that several share. */
interface SharedLoad extends Standing {
  hasFault: boolean
}

/** Registers the gauges of a server, which are read at each scrape. */
export function registerGauges(registry: Registry, counted: Counted): void {
  const { gauge, gauges } = polledGauges(registry)
  const room = async (part: keyof Room) => (await counted.room())?.[part] ?? null

  gauges('rsm_build_info', 'Always 1; the version is in the label.', 'version', async () => ({
    [counted.version]: 1,
  }))
  gauges('rsm_hosts', 'Hosts by status.', 'status', () => counted.hosts())
  gauge('rsm_agent_links', 'WebSockets of agents that are open.', () => counted.links().open)
  gauge(
    'rsm_frame_backlog_bytes',
    'Frames of agents that are read and not dealt with.',
    () => counted.links().backlogBytes,
  )
  gauges('rsm_tasks', 'Tasks that have not ended.', 'status', async () => ({
    RUNNING: (await counted.work()).tasks,
  }))
  gauges(
    'rsm_executions',
    'Executions that were sent to their host and have not ended.',
    'status',
    async () => ({ RUNNING: (await counted.work()).running }),
  )
  gauge('rsm_terminals', 'Terminal sessions that are open.', () => counted.terminals().open)
  gauges(
    'rsm_queue_length',
    'What waits: writes for the journal, executions for their host, passwords to be checked.',
    'queue',
    async () => ({
      journal: counted.journalQueue(),
      executions: (await counted.work()).waiting,
      logins: counted.loginQueue(),
    }),
  )
  gauge('rsm_disk_size_bytes', 'The file system of the data directory.', () => room('size'))
  gauge('rsm_disk_available_bytes', 'What the server may still write there.', () => room('available'))
  gauge('rsm_store_read_only', '1 while the store refuses writes, as on a full disk.', () =>
    counted.readOnly() ? 1 : 0,
  )
  gauge('rsm_audit_refused', '1 while the audit log takes no entries, and so every change is refused.', () =>
    counted.auditRefused() ? 1 : 0,
  )
  gauge(
    'rsm_webhook_deliveries_waiting',
    'Events that wait for the webhooks that this server sends for.',
    () => counted.deliveries(),
  )
  registerShared(registry, () => counted.shared())
}

/** Registers the gauges of one server among several; `read` answers null where it has its store to itself. */
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
    'Until other servers may take over the tasks and links of this one; only with --store.',
    () => read()?.leaseSeconds ?? null,
  )
  gauges(
    'rsm_store_connections',
    'Connections to PostgreSQL that are in use, by pool; only with --store.',
    'pool',
    poolsBy('busy'),
  )
  gauges(
    'rsm_store_waiting',
    'Calls that wait for a connection to PostgreSQL, by pool; only with --store.',
    'pool',
    poolsBy('waiting'),
  )
  gauge(
    'rsm_hint_lag_seconds',
    'How long a hint takes from this server through PostgreSQL back to it; only with --store.',
    () => read()?.hints.lagSeconds ?? null,
  )
}

/** What a gauge shows at a scrape: nothing where it is unknown. */
type Value = number | null
type Series = Readonly<Record<string, number>>

/** Milliseconds to wait for a gauge: half of Prometheus' default `scrape_timeout`. */
const readTimeout = 5_000

/** Gauges of a registry that are looked at when a scrape asks for them. */
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
    /** One series for each value of the label; none where it is unknown. */
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

/** Answers null if the store is away or slow, so that the scrape can report that. */
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
