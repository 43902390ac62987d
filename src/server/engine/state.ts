import type { KnownHost } from '../../core/script/host-variables.ts'
import { isFinal, mayBecome } from '../../core/task/task-state.ts'
import type { Clock } from '../clock.ts'
import type { LocalFacts } from '../local-facts.ts'
import type { Log } from '../log.ts'
import type { Runs } from '../runs.ts'
import type { Hints } from '../seams/hints.ts'
import type { Keys } from '../seams/keys.ts'
import type { Outputs } from '../seams/outputs.ts'
import type { Views } from '../seams/presence.ts'
import type { ExecutionRecord } from '../seams/records.ts'
import type { Results } from '../seams/results.ts'
import type { Store, Transaction } from '../seams/store.ts'
import type { AgentLink } from './agent-link.ts'
import { createReceipts, type Receipts } from './receipts.ts'
import type { TaskRun } from './task-run.ts'

export interface EngineDependencies {
  store: Store
  serverRuns: Runs
  outputs: Outputs
  results: Results
  presence: Views
  hints: Hints
  facts: LocalFacts
  keys: Keys
  clock: Clock
  log: Log
  /** What scripts are told of these hosts; those that are gone are left out. */
  knownHosts: (hostIds: readonly number[]) => Promise<KnownHost[]>
}

/** An execution whose turn has come and whose host can't take it yet. */
export interface Waiting {
  run: TaskRun
  position: number
  /** Monotonic milliseconds since when the host has not been reachable. */
  since: number
}

/** A host as the engine sees it: its link, what runs there, and what waits for it. */
export interface HostLane {
  link: AgentLink | null
  /** Execution ids sent and not final. */
  inFlight: Set<string>
  waiting: Waiting[]
  /** Tasks that the agent of the present link has named or was sent: it says that they still run. */
  named: Set<string>
  /** How far the journal of each process of its agent is known to go; more than one are copies, or restarts. */
  journals: Map<string, number>
}

/** Processes of one agent whose journals are remembered. */
const knownInstances = 8

/** Notes how far the journal of an agent's process goes, and answers the highest that was heard. */
export function heardJournal(lane: HostLane, instanceId: string, sequence: number): number {
  const highest = Math.max(sequence, lane.journals.get(instanceId) ?? 0)
  lane.journals.delete(instanceId)
  lane.journals.set(instanceId, highest)
  for (const known of lane.journals.keys())
    if (lane.journals.size > knownInstances) lane.journals.delete(known)
  return highest
}

/** An agent's first retry comes 5 s after it lost its server (contract §6), with jitter; this gives it time for two. */
export const returnGrace = 15_000

/** What the rooms of the engine share. */
export interface EngineState extends EngineDependencies {
  runs: Map<string, TaskRun>
  /** Tasks of which nothing starts until a person has confirmed that the store was restored (held.ts). */
  readonly held: Set<string>
  lanes: Map<number, HostLane>
  stopping: boolean
  /** Monotonic milliseconds until which agents of a former life of this server come back, one by one. */
  readonly returnsUntil: number
  lane(hostId: number): HostLane
  readonly receipts: Receipts
  /**
   * Changes executions of a run as one durable step. `decide` sees the newest record and answers the next one, or null
   * to leave it; final ones are never shown to it, for final states never change.
   */
  change(
    run: TaskRun,
    positions: Iterable<number>,
    decide: (current: ExecutionRecord) => ExecutionRecord | null,
    /** What else belongs to this step, in the same transaction. */
    also?: (tx: Transaction) => Promise<void>,
  ): Promise<ExecutionRecord[]>
}

/** `settled` hears of every execution that has become final, after it is durable. */
export function createState(
  deps: EngineDependencies,
  settled: (run: TaskRun, executions: ExecutionRecord[]) => void,
): EngineState {
  const lanes = new Map<number, HostLane>()
  const state: EngineState = {
    ...deps,
    runs: new Map(),
    held: new Set(),
    lanes,
    stopping: false,
    returnsUntil: deps.clock.monotonic() + returnGrace,
    receipts: createReceipts(deps.store, deps.log),
    lane(hostId) {
      let lane = lanes.get(hostId)
      if (!lane) {
        lane = { link: null, inFlight: new Set(), waiting: [], named: new Set(), journals: new Map() }
        lanes.set(hostId, lane)
      }
      return lane
    },
    async change(run, positions, decide, also) {
      // An iterator gives its positions once, and the work may run again.
      const those = [...positions]
      const changing = deps.store.transact(async (tx) => {
        await also?.(tx)
        const next: ExecutionRecord[] = []
        for (const position of those) {
          const id = run.executions[position]?.id
          const current = id === undefined ? undefined : await tx.get('executions', id)
          if (!current || isFinal(current.status)) continue
          const decided = decide(current)
          if (!decided) continue
          if (!mayBecome(current.status, decided.status))
            throw new Error(`a result can not go from ${current.status} to ${decided.status}`)
          tx.put('executions', decided)
          next.push(decided)
        }
        return next
      })
      state.receipts.join()
      const changed = await changing
      for (const execution of changed) {
        run.apply(execution)
        if (isFinal(execution.status)) {
          run.plan.settled(execution.position, execution.status)
          deps.facts.publish('resultFinal', execution)
          const lane = lanes.get(execution.hostId)
          lane?.inFlight.delete(execution.id)
          lane?.named.delete(run.task.id)
        }
        deps.hints.publish('task', { id: run.task.id, hostId: execution.hostId, change: 'updated' })
      }
      if (changed.length > 0) deps.hints.publish('task', { id: run.task.id, hostId: null, change: 'updated' })
      const final = changed.filter((execution) => isFinal(execution.status))
      if (final.length > 0) settled(run, final)
      return changed
    },
  }
  return state
}

/** An execution that ends now, with what a host that never reported leaves open. */
export function ended(
  current: ExecutionRecord,
  status: 'FAILED' | 'CANCELLED' | 'SKIPPED' | 'UNREACHABLE' | 'LOST',
  at: string,
  error: string | null,
): ExecutionRecord {
  // The clock may have been set back since it started.
  const completedAt = current.startedAt !== null && current.startedAt > at ? current.startedAt : at
  return { ...current, status, completedAt, error }
}
