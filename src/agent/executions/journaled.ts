import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { GatePhase, StepEnd } from '../../core/tasks/gates.ts'
import type { Limited } from '../processes/limits.ts'
import type { Origin } from '../processes/machine.ts'

/** Written durably before the spawn: from then on it never starts again. `uptime` in seconds since boot. */
export interface Started {
  e: 'started'
  taskId: string
  bootId: string
  /** Directory of this step, as in `Origin`; absent in journals of older agents. */
  directory?: string
  startedAt: string
  uptime: number
  timeout: number
  maxOutputBytes: number
  cgroup: string | null
  /** Absent if unlimited, and in journals of older agents. */
  limited?: Limited
  isBoxed?: boolean
  /** Upgrades the agent; a file in its directory says how it failed. */
  isUpgrade?: boolean
  /** Copies files or receives stdin; a file in its directory says how that ended. */
  isOfFiles?: boolean
  /** Uid it runs as; absent in journals of older agents. */
  uid?: number
  /** Identifies its processes (machine.ts); absent in journals of older agents. */
  mark?: string
  /** Step of a gated execution; absent for the script. */
  phase?: GatePhase
  attempt?: number
}

/** `startTime` in ticks since boot (proc(5), field 22): with the pid it identifies a process uniquely. */
export interface Spawned {
  e: 'spawned'
  taskId: string
  pid: number
  startTime: number
}

/** Why a process tree is being ended, so that a restart in the grace period still knows. */
export type EndReason = 'TIMEOUT' | 'CANCELLED'

/** A finished step of a gated execution, with its share of the output. */
export interface Passed
  extends StepEnd,
    Required<Pick<ScriptComplete, 'startedAt' | 'completedAt' | 'stdoutBytes' | 'stderrBytes' | 'truncated'>>,
    Pick<ScriptComplete, 'containment' | 'survivors'> {
  /** Chunks of its output; their sequences follow those of the previous step. */
  chunks: number
}

export type Entry =
  /** `origin` is absent in journals of older agents. */
  | { e: 'received'; taskId: string; origin?: Origin }
  /** Like `received`, for a gated execution: an agent that does not know this entry must not continue it. */
  | { e: 'gated'; taskId: string; origin?: Origin }
  /** Ends the step: clears its start; later entries are about the next step. */
  | ({ e: 'passed'; taskId: string } & Passed)
  | Started
  | Spawned
  | { e: 'ending'; taskId: string; reason: EndReason }
  | { e: 'ended'; taskId: string; complete: ScriptComplete }
  | { e: 'acknowledged'; taskId: string; at: number }
  | { e: 'cancelled'; taskId: string; at: number }

const kinds: Record<Entry['e'], true> = {
  received: true,
  gated: true,
  passed: true,
  started: true,
  spawned: true,
  ending: true,
  ended: true,
  acknowledged: true,
  cancelled: true,
}
export const entryKinds: ReadonlySet<string> = new Set(Object.keys(kinds))

export interface JournaledExecution {
  taskId: string
  received?: boolean
  origin?: Origin
  isGated?: boolean
  passed?: Passed[]
  /** Start of the current step, like `spawned` and `ending`. */
  started?: Started
  spawned?: Spawned
  ending?: EndReason
  complete?: ScriptComplete
  /** Journal time; a tombstone from then on. */
  acknowledgedAt?: number
  /** Journal time of a cancel that arrived before its execution. */
  cancelledAt?: number
}

/** Milliseconds for which a tombstone and an early cancel are kept (contract §4). */
const remembered = 24 * 3600 * 1000

export function fold(records: Map<string, JournaledExecution>, entry: Entry): void {
  const record = records.get(entry.taskId) ?? { taskId: entry.taskId }
  records.set(entry.taskId, record)
  if (entry.e === 'received' || entry.e === 'gated') {
    record.received = true
    if (entry.e === 'gated') record.isGated = true
    if (entry.origin) record.origin = entry.origin
  } else if (entry.e === 'passed') {
    const { e: _, taskId: _of, ...passed } = entry
    record.passed ??= []
    record.passed.push(passed)
    forgetStart(record)
  } else if (entry.e === 'started') record.started = entry
  else if (entry.e === 'spawned') record.spawned = entry
  else if (entry.e === 'ending') record.ending = entry.reason
  else if (entry.e === 'ended') record.complete = entry.complete
  else if (entry.e === 'cancelled') record.cancelledAt = entry.at
  else {
    record.acknowledgedAt = entry.at
    delete record.started
    delete record.spawned
    delete record.isGated
    delete record.origin
    delete record.passed
  }
}

function forgetStart(record: JournaledExecution): void {
  delete record.started
  delete record.spawned
  delete record.ending
}

export function entriesOf(record: JournaledExecution): Entry[] {
  const { taskId, origin } = record
  const entries: Entry[] = []
  if (record.received)
    entries.push({ e: record.isGated ? 'gated' : 'received', taskId, ...(origin && { origin }) })
  for (const passed of record.passed ?? []) entries.push({ e: 'passed', taskId, ...passed })
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
