import { faultPoint } from '#fault-point'
import { isFinal, mayBecome } from '../../../../core/tasks/task.ts'
import { type Clock, isoTime } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Decide } from '../../executions/transitions.ts'
import type { Execution, Guard, Transition } from '../../ports/executions.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Store, Transaction } from '../../ports/store.ts'
import type { Ask, Database } from '../connection/database.ts'
import type { PostgresOutputs } from '../outputs/outputs.ts'
import { ClaimedRows, columns, createReadMany, outputOf, type Row, type Stored, storedOf } from './rows.ts'
import { type Change, createWrite, type Fence, type Written } from './write.ts'

/** Conditions of a step, in addition to unchanged records. */
interface Condition {
  fence?: Fence
  /** Changes only executions with this epoch. */
  epoch?: number
  /** New epoch, by which this server claims them. */
  nextEpoch?: number
  /** Skips tasks held by a restore. */
  unlessHeld?: boolean
}

export interface ExecutionsDependencies {
  database: Database
  store: Pick<Store, 'get'> & {
    /** Like `transact`, with statements of other ports in the same transaction. */
    transactAsk<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
    /** Like `transactAsk`, but locks what the decision depends on. */
    transactLocked<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
  }
  outputs: Pick<PostgresOutputs, 'appendGuarded'>
  hints: Hints
  clock: Clock
  log: Log
}

type Decided = { readonly change: Change; readonly written: Written | null }

/** Durable steps of executions. A step is decided again if its record changed since it was read. */
export class Steps {
  readonly deps: ExecutionsDependencies
  readonly claimed = new ClaimedRows()
  /** Cache of rsm.held. */
  readonly held = new Set<string>()
  readonly publisher: Publisher
  /** Reads rows in the order of the ids, without missing ones. */
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

  /** See Executions.transition. */
  async transition(step: Transition): Promise<Execution[]> {
    const { guard, which, point, unlessHeld = false } = step
    const chosen = 'hostId' in which ? { stored: await this.#openOn(which.hostId) } : which
    const at = this.now()
    const decide: Decide = (current, output) => step.decide(current, output, at)
    return this.change(point, chosen, decide, { ...conditionOf(guard), unlessHeld })
  }

  async #openOn(hostId: number): Promise<Stored[]> {
    const text = `select ${columns} from rsm.executions e where e.host_id = $1 and e.status in ('PENDING', 'RUNNING')`
    const rows = await this.deps.database.ask<Row>('api', { name: 'executions open on', text }, [hostId])
    return rows.map(storedOf)
  }

  /**
   * Changes executions, each by one guarded write. `decide` gets each record that has not ended, and returns
   * the next one, or null to leave it. Returns the changed executions; rejects if some could not be written.
   */
  async change(
    point: Transition['point'],
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

  /** Returns changes that were not written. Before it rejects, it publishes those that were. */
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

  /** Takes claimed rows from the cache, and reads the others. */
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

  /** Returns rows that changed since the decision; the other missed ones are fenced or held. */
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

function conditionOf(guard: Guard | null): Condition {
  if (guard === null) return {}
  if ('marked' in guard) return { epoch: guard.marked.epoch }
  if ('link' in guard) return { fence: guard.link }
  const { owner, claims } = guard
  return { fence: owner, ...(claims && { nextEpoch: owner.epoch }) }
}

function isOther(now: Stored, { current }: Change): boolean {
  return (
    now.rev !== current.rev ||
    now.epoch !== current.epoch ||
    now.progress.lastSequence !== current.progress.lastSequence
  )
}

/** Publishes hints about changes of this server. */
interface Publisher {
  changed(written: readonly Pick<Written, 'stored' | 'hasMore'>[]): void
  task(taskId: string, change: 'created' | 'updated'): void
  /** Wakes the queues of hosts whose executions are due. */
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
