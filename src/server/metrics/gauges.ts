import type { HostStatus } from '../../core/host.ts'
import type { Family, Sample } from './family.ts'
import type { Room } from './room.ts'

/** What is counted when a scrape asks for it. */
export interface Counted {
  version: string
  /** Hosts by status, every status named. */
  hosts(): Promise<Readonly<Record<HostStatus, number>>>
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
}

const one = (value: number): Sample[] => [{ labels: {}, value }]
const gauge = (name: string, help: string, samples: Family['samples']): Family => ({
  name,
  help,
  type: 'gauge',
  samples,
})

export function createGauges(counted: Counted): Family[] {
  const ofRoom = async (part: keyof Room): Promise<Sample[]> => {
    const room = await counted.room()
    return room === null ? [] : one(room[part])
  }
  const queues = async (): Promise<[string, number][]> => [
    ['journal', counted.journalQueue()],
    ['executions', (await counted.work()).waiting],
    ['logins', counted.loginQueue()],
  ]
  return [
    gauge('rsm_build_info', 'Always 1; the version is in the label.', () => [
      { labels: { version: counted.version }, value: 1 },
    ]),
    gauge('rsm_hosts', 'Hosts by status.', async () =>
      Object.entries(await counted.hosts()).map(([status, value]) => ({ labels: { status }, value })),
    ),
    gauge('rsm_agent_links', 'WebSockets of agents that are open.', () => one(counted.links().open)),
    gauge('rsm_frame_backlog_bytes', 'Frames of agents that are read and not dealt with.', () =>
      one(counted.links().backlogBytes),
    ),
    gauge('rsm_tasks', 'Tasks that have not ended.', async () => [
      { labels: { status: 'RUNNING' }, value: (await counted.work()).tasks },
    ]),
    gauge('rsm_executions', 'Executions that were sent to their host and have not ended.', async () => [
      { labels: { status: 'RUNNING' }, value: (await counted.work()).running },
    ]),
    gauge('rsm_terminals', 'Terminal sessions that are open.', () => one(counted.terminals().open)),
    gauge(
      'rsm_queue_length',
      'What waits: writes for the journal, executions for their host, passwords to be checked.',
      async () => (await queues()).map(([queue, value]) => ({ labels: { queue }, value })),
    ),
    gauge('rsm_disk_size_bytes', 'The file system of the data directory.', () => ofRoom('size')),
    gauge('rsm_disk_available_bytes', 'What the server may still write there.', () => ofRoom('available')),
    gauge('rsm_store_read_only', '1 while the store refuses writes, as on a full disk.', () =>
      one(counted.readOnly() ? 1 : 0),
    ),
    gauge(
      'rsm_audit_refused',
      '1 while the audit log takes no entries, and so every change is refused.',
      () => one(counted.auditRefused() ? 1 : 0),
    ),
  ]
}
