import type { Registry } from 'prom-client'
import type { HostStatus } from '../../core/hosts/host.ts'
import type { Room } from '../../disk/room.ts'
import { lookedAt } from './looked-at.ts'
import { registerShared, type SharedLoad } from './shared.ts'

/** What is counted when a scrape asks for it. */
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

/** Registers what is looked at when a scrape asks for it. */
export function registerGauges(registry: Registry, counted: Counted): void {
  const { gauge, gauges } = lookedAt(registry)
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
