import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Limited } from '../processes/limits.ts'

/** Before the spawn and durable: from here on it never starts again. `uptime` in seconds since boot. */
export interface Started {
  e: 'started'
  taskId: string
  bootId: string
  startedAt: string
  uptime: number
  timeout: number
  maxOutputBytes: number
  cgroup: string | null
  /** Absent where nothing limits it, as in journals of older agents. */
  limited?: Limited
  isBoxed?: boolean
  /** It upgrades the agent: how it failed stands in a file of its directory. */
  isUpgrade?: boolean
  /** The user that it runs as; absent in journals of older agents. */
  uid?: number
  /** By which its processes are known (machine.ts); absent in journals of older agents. */
  mark?: string
}

/** `startTime` in ticks since boot (proc(5), field 22): with the pid it names one process for ever. */
export interface Spawned {
  e: 'spawned'
  taskId: string
  pid: number
  startTime: number
}

/** Why a tree is being ended, so that a restart in the grace period still knows. */
export type EndReason = 'TIMEOUT' | 'CANCELLED'

export type Entry =
  | { e: 'received'; taskId: string }
  | Started
  | Spawned
  | { e: 'ending'; taskId: string; reason: EndReason }
  | { e: 'ended'; taskId: string; complete: ScriptComplete }
  | { e: 'acknowledged'; taskId: string; at: number }
  | { e: 'cancelled'; taskId: string; at: number }

const kinds: Record<Entry['e'], true> = {
  received: true,
  started: true,
  spawned: true,
  ending: true,
  ended: true,
  acknowledged: true,
  cancelled: true,
}
export const entryKinds: ReadonlySet<string> = new Set(Object.keys(kinds))

/** All that the journal says of one execution. */
export interface JournaledExecution {
  taskId: string
  received?: boolean
  started?: Started
  spawned?: Spawned
  ending?: EndReason
  complete?: ScriptComplete
  /** By the journal's own time; a tombstone from then on. */
  acknowledgedAt?: number
  /** A cancel that overtook its execution. */
  cancelledAt?: number
}

/** How long a tombstone and an early cancel are kept (contract §4). */
const remembered = 24 * 3600 * 1000

export function fold(records: Map<string, JournaledExecution>, entry: Entry): void {
  const record = records.get(entry.taskId) ?? { taskId: entry.taskId }
  records.set(entry.taskId, record)
  if (entry.e === 'received') record.received = true
  else if (entry.e === 'started') record.started = entry
  else if (entry.e === 'spawned') record.spawned = entry
  else if (entry.e === 'ending') record.ending = entry.reason
  else if (entry.e === 'ended') record.complete = entry.complete
  else if (entry.e === 'cancelled') record.cancelledAt = entry.at
  else {
    record.acknowledgedAt = entry.at
    delete record.started
    delete record.spawned
  }
}

export function entriesOf(record: JournaledExecution): Entry[] {
  const { taskId } = record
  const entries: Entry[] = []
  if (record.received) entries.push({ e: 'received', taskId })
  if (record.started) entries.push(record.started)
  if (record.spawned) entries.push(record.spawned)
  if (record.ending) entries.push({ e: 'ending', taskId, reason: record.ending })
  if (record.complete) entries.push({ e: 'ended', taskId, complete: record.complete })
  if (record.cancelledAt) entries.push({ e: 'cancelled', taskId, at: record.cancelledAt })
  if (record.acknowledgedAt) entries.push({ e: 'acknowledged', taskId, at: record.acknowledgedAt })
  return entries
}

export function isExpired(record: JournaledExecution, now: number): boolean {
  const isActive = (record.received || record.started || record.complete) && !record.acknowledgedAt
  const at = record.acknowledgedAt ?? record.cancelledAt
  return !isActive && at !== undefined && now - at > remembered
}
