import { faultPoint } from '#fault-point'
import type { FaultPoint } from '../../../../core/fault-point.ts'
import { isFinal, mayBecome } from '../../../../core/tasks/task.ts'
import { type Clock, isoTime } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Decide } from '../../executions/transitions.ts'
import type { Execution } from '../../ports/executions.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Store, Transaction } from '../../ports/store.ts'
import type { Ask, Database } from '../connection/database.ts'
import type { PostgresOutputs } from '../outputs/outputs.ts'
import { ClaimedRows } from './claimed-rows.ts'
import { createReadMany, outputOf, type Stored } from './rows.ts'
import { type Change, createWrite, type Fence, type Written } from './write.ts'

type PointOf<P> = P extends `server.${infer Name}.before` ? Name : never
type Point = PointOf<FaultPoint>

/** Conditions of a step, beside that each record is still the one that was decided on. */
interface Condition {
  fence?: Fence
  /** Only of those that have this epoch. */
  epoch?: number
  /** The epoch that they get: from then on this server has claimed them. */
  nextEpoch?: number
  /** Not where a restore holds the task. */
  unlessHeld?: boolean
}

export interface ExecutionsDependencies {
  database: Database
  store: Pick<Store, 'get'> & {
    /** As `transact`, with statements of other ports in the same transaction. */
    transactAsk<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
    /** The same, where all that is decided on is locked. */
    transactLocked<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
  }
  outputs: Pick<PostgresOutputs, 'appendGuarded'>
  hints: Hints
  clock: Clock
  log: Log
}

type Decided = { readonly change: Change; readonly written: Written | null }

/** The durable steps of executions: what is stored decides, and a step on what has changed since is decided again. */
export class Steps {
  readonly deps: ExecutionsDependencies
  readonly claimed = new ClaimedRows()
  /** As of rsm.held, when this server read or wrote it last. */
  readonly held = new Set<string>()
  readonly publisher: Publisher
  /** In the order of the ids, without those that are not there. */
  readonly read: (ids: readonly string[]) => Promise<Stored[]>
  readonly #write: (change: Change) => Promise<Written | null>

  constructor(deps: ExecutionsDependencies) {
    this.deps = deps
    this.publisher = createPublisher(deps.hints)
    this.read = createReadMany(deps.database)
    this.#write = createWrite(deps.database)
  }

  now(): string {
    return isoTime(this.deps.clock.now())
  }

  /**
   * Changes executions, each by one guarded write. `decide` sees the record of each that has not ended, and answers the next
   * one, or null to leave it. Answers those that have changed; rejects where some could not be written.
   */
  async change(
    point: Point | null,
    which: readonly string[] | { stored: readonly Stored[] },
    decide: Decide,
    condition: Condition = {},
  ): Promise<Execution[]> {
    const changed: Written[] = []
    let known = 'stored' in which ? which.stored : await this.#known(which)
    for (let isFirst = true; known.length > 0; isFirst = false) {
      const changes = known.flatMap((stored) => this.#decided(stored, decide, condition))
      if (changes.length === 0) break
      if (isFirst && point !== null) faultPoint(`server.${point}.before`)
      const missed = await this.#writeAll(changes, changed)
      known = await this.#readAgain(missed)
    }
    if (changed.length > 0 && point !== null) faultPoint(`server.${point}.after`)
    this.publisher.changed(changed)
    return changed.map(({ stored }) => this.claimed.withOutput(stored).execution)
  }

  /** Answers those that were not written; where one fails, what was written is told all the same. */
  async #writeAll(changes: readonly Change[], changed: Written[]): Promise<Change[]> {
    const ends = await Promise.allSettled(
      changes.map(async (change): Promise<Decided> => ({ change, written: await this.#write(change) })),
    )
    const missed: Change[] = []
    let failure: { reason: unknown } | null = null
    for (const end of ends)
      if (end.status === 'rejected') failure ??= end
      else if (end.value.written === null) missed.push(end.value.change)
      else {
        const { change, written } = end.value
        if (change.nextEpoch === null) this.claimed.note(written.stored)
        else this.claimed.take(written.stored)
        changed.push(written)
      }
    if (failure === null) return missed
    this.publisher.changed(changed)
    throw failure.reason
  }

  /** As this server has claimed them, or else as they are stored. */
  async #known(ids: readonly string[]): Promise<Stored[]> {
    const own = ids.flatMap((id) => this.claimed.get(id)?.stored ?? [])
    return [...own, ...(await this.read(ids.filter((id) => !this.claimed.get(id))))]
  }

  #decided(current: Stored, decide: Decide, condition: Condition): Change[] {
    const { execution } = current
    const { fence = null, epoch = null, nextEpoch = null, unlessHeld = false } = condition
    if (isFinal(execution.status) || (epoch !== null && current.epoch !== epoch)) return []
    const own = this.claimed.get(execution.id)
    const isOwn = own !== undefined && own.epoch === current.epoch
    const next = decide(execution, isOwn ? own.output : outputOf(current))
    if (next === null) return []
    if (!mayBecome(execution.status, next.status))
      throw new Error(`a result cannot go from ${execution.status} to ${next.status}`)
    const reportsOutput = execution.status === 'RUNNING' && isFinal(next.status) && !isOwn
    const lastSequence = reportsOutput ? current.progress.lastSequence : null
    return [{ current, next, fence, epoch, nextEpoch, lastSequence, unlessHeld }]
  }

  /** Those that have changed since they were decided on; the others are fenced, or held. */
  async #readAgain(missed: readonly Change[]): Promise<Stored[]> {
    if (missed.length === 0) return []
    const byId = new Map(missed.map((change) => [change.next.id, change]))
    const again = await this.read([...byId.keys()])
    for (const stored of again) this.claimed.note(stored)
    return again.filter((stored) => {
      const change = byId.get(stored.execution.id)
      return change !== undefined && isOther(stored, change)
    })
  }
}

/** Whether the record is another one than that which was decided on. */
function isOther(now: Stored, { current }: Change): boolean {
  return (
    now.rev !== current.rev ||
    now.epoch !== current.epoch ||
    now.progress.lastSequence !== current.progress.lastSequence
  )
}

/** Hints at what this server has written. */
interface Publisher {
  changed(written: readonly Pick<Written, 'stored' | 'hasMore'>[]): void
  task(taskId: string, change: 'created' | 'updated'): void
  /** What is due among these can be taken. */
  due(executions: readonly Execution[]): void
  /** Whether hints received now are published by this server itself. */
  readonly isPublishing: boolean
}

function createPublisher(hints: Hints): Publisher {
  let isPublishing = false

  function publish(publishAll: () => void): void {
    isPublishing = true
    try {
      publishAll()
    } finally {
      isPublishing = false
    }
  }

  const queues = (hostIds: Iterable<number>) => {
    for (const id of new Set(hostIds)) hints.publish('lane', { id })
  }

  return {
    get isPublishing() {
      return isPublishing
    },
    changed(written) {
      const executions = written.map(({ stored }) => stored.execution)
      publish(() => {
        for (const { taskId: id, hostId } of executions)
          hints.publish('task', { id, hostId, change: 'updated' })
        for (const id of new Set(executions.map(({ taskId }) => taskId)))
          hints.publish('task', { id, hostId: null, change: 'updated' })
        queues(
          written.flatMap(({ stored: { execution }, hasMore }) => {
            const { status, cancelRequested, hostId } = execution
            const isToDo = isDue(execution) || (status === 'RUNNING' && cancelRequested)
            return isToDo || (isFinal(status) && hasMore) ? [hostId] : []
          }),
        )
      })
    },
    task: (id, change) => publish(() => hints.publish('task', { id, hostId: null, change })),
    due: (executions) => publish(() => queues(executions.filter(isDue).map(({ hostId }) => hostId))),
  }
}

const isDue = ({ status, dueAt, overSsh }: Execution) => status === 'PENDING' && dueAt !== null && !overSsh
