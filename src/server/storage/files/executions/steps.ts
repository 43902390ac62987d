import { faultPoint } from '#fault-point'
import { isFinal, mayBecome } from '../../../../core/tasks/task.ts'
import { type Clock, isoTime } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import { AckBatcher } from '../../executions/ack-batcher.ts'
import { noOutput } from '../../executions/live-output.ts'
import { asNamed, type Decide } from '../../executions/transitions.ts'
import type { Execution, Guard, OutputSoFar, Transition } from '../../ports/executions.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Outputs, Results } from '../../ports/outputs.ts'
import type { Store, Transaction } from '../../ports/store.ts'
import type { ExecutionRecord } from '../../records/task.ts'
import type { MemoryCluster } from '../cluster.ts'
import { RunningTasks } from './running-tasks.ts'

type Choice = readonly string[] | ((tx: Transaction) => Promise<readonly (string | Execution | undefined)[]>)

export interface ExecutionsDependencies {
  store: Store
  outputs: Outputs
  results: Results
  hints: Hints
  links: Pick<MemoryCluster['links'], 'isCurrentNow'>
  ownership: Pick<MemoryCluster['ownership'], 'holdsNow'>
  clock: Clock
  log: Log
}

/** Durable steps of executions, and the in-memory state that follows from their records. */
export class Steps {
  readonly deps: ExecutionsDependencies
  readonly tasks: RunningTasks
  readonly held = new Set<string>()
  readonly acks: AckBatcher

  constructor(deps: ExecutionsDependencies) {
    const { store, hints, log } = deps
    this.deps = deps
    this.tasks = new RunningTasks(hints)
    this.acks = new AckBatcher(async (ids) => {
      const open = ids.filter((id) => this.tasks.execution(id)?.status === 'RUNNING')
      if (open.length === 0 || store.readOnlyReason !== null) return
      await this.transition(asNamed(null, open))
    }, log)
  }

  now(): string {
    return isoTime(this.deps.clock.now())
  }

  outputOf(execution: Execution): OutputSoFar {
    // A new task is in memory only once it is on disk.
    return this.tasks.get(execution.taskId)?.output(execution) ?? noOutput
  }

  readonly isWaiting = ({ status, taskId }: Execution): boolean =>
    status === 'PENDING' && !this.held.has(taskId)

  /** See Executions.transition. */
  transition({ guard, which, point, decide, unlessHeld }: Transition): Promise<Execution[]> {
    const at = this.now()
    const choice =
      'hostId' in which ? (tx: Transaction) => tx.find('executions', 'hostId', which.hostId) : which
    const mayChange = (current: Execution) =>
      this.#permits(guard, current) && !(unlessHeld && this.held.has(current.taskId))
    return this.change(point, choice, (current, output) =>
      mayChange(current) ? decide(current, output, at) : null,
    )
  }

  /** Whether the guard lets a step change the execution. */
  #permits(guard: Guard | null, { id, taskId }: Execution): boolean {
    const { links, ownership } = this.deps
    if (guard === null) return true
    if ('owner' in guard) return ownership.holdsNow(guard.owner, taskId)
    if ('link' in guard) return links.isCurrentNow(guard.link)
    const known = this.tasks.execution(id)
    return known !== undefined && this.tasks.of(known).live(known.position).epoch === guard.marked.epoch
  }

  /**
   * Changes executions in one durable step. `decide` gets the newest record of each that has not ended, and
   * returns the next one, or null to leave it. `staged` is called once later steps see the changes, before
   * they are durable.
   */
  async change(
    point: Transition['point'],
    choice: Choice,
    decide: Decide,
    {
      first,
      staged,
    }: { first?: (tx: Transaction) => Promise<void>; staged?: (changed: Execution[]) => void } = {},
  ): Promise<Execution[]> {
    let arrived = () => undefined as void
    const changing = this.deps.store.transact(async (tx) => {
      await first?.(tx)
      const changed: ExecutionRecord[] = []
      const chosen = typeof choice === 'function' ? await choice(tx) : choice
      for (const one of chosen) {
        const current = typeof one === 'string' ? await tx.get('executions', one) : one
        const next = current && !isFinal(current.status) ? decide(current, this.outputOf(current)) : null
        if (!current || !next) continue
        if (!mayBecome(current.status, next.status))
          throw new Error(`a result cannot go from ${current.status} to ${next.status}`)
        tx.put('executions', next)
        changed.push(next)
      }
      arrived = this.tasks.staged(changed)
      if (point !== null && (changed.length > 0 || first)) faultPoint(`server.${point}.before`)
      staged?.(changed)
      // Links see them from here on, so that both steps share an fsync.
      if (point === 'turn') queueMicrotask(() => this.tasks.hintQueues(changed))
      return changed
    })
    this.acks.join()
    let changed: Execution[]
    try {
      changed = await changing
    } finally {
      // In the same turn as `apply`, so that no reader sees the old state.
      arrived()
    }
    if (point !== null && (changed.length > 0 || first)) faultPoint(`server.${point}.after`)
    // Links were notified when the turn was staged.
    return this.tasks.apply(changed, point !== 'turn')
  }
}
