import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import { messageOf, type Order } from '../../core/protocol/orders.ts'
import { ThrottledErrors } from '../log.ts'
import { CgroupLeftovers } from '../processes/cgroups.ts'
import { isSwapped } from '../upgrade/order.ts'
import { Execution, knownEnd, notContinued, notRun, Permissions } from './execution.ts'
import { dropOrder, ExecutionQueue, Slots } from './execution-queue.ts'
import { FrozenOutput, Leftovers } from './frozen-output.ts'
import type { Entry } from './journaled.ts'
import { SpoolWatch } from './output/spool-watch.ts'
import { Phases } from './phases.ts'
import { recovered } from './recovery.ts'
import type { RunnerEvents, RunnerOptions } from './runner-options.ts'
import { refusalOf, startStep } from './starting.ts'
import { identityOf, isGated, orderOfStep } from './steps.ts'
import { refusesLine, Supervision } from './supervision.ts'

const maxEarlyCancels = 10_000
const cancelled = { status: 'CANCELLED' } as const

/** Runs the server's orders, each at most once, and keeps them until acknowledged (contract §4). */
export class Runner {
  readonly executions: Map<string, Execution> = new Map()
  readonly #options: RunnerOptions
  readonly #queue: ExecutionQueue
  readonly #spools: SpoolWatch
  readonly #frozen: FrozenOutput
  readonly #leftovers: Leftovers
  readonly #errors: ThrottledErrors
  readonly #slots: Slots
  readonly #supervision: Supervision
  readonly #phases: Phases
  readonly permissions: Permissions
  readonly #listeners: Partial<RunnerEvents>[] = []
  readonly #events: RunnerEvents = {
    changed: (execution) => this.#listeners.forEach((each) => each.changed?.(execution)),
    received: (execution, sequence) =>
      this.#listeners.forEach((each) => each.received?.(execution, sequence)),
    reached: (execution) => this.#listeners.forEach((each) => each.reached?.(execution)),
    answer: (complete) => this.#listeners.forEach((each) => each.answer?.(complete)),
    counted: () => this.#listeners.forEach((each) => each.counted?.()),
  }
  readonly #cgroups: CgroupLeftovers
  readonly #starting = new Set<Promise<void>>()
  #isStopped = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#errors = new ThrottledErrors(options.clock, options.log)
    this.#queue = new ExecutionQueue(options, this.#errors)
    this.#cgroups = new CgroupLeftovers(options.clock)
    this.#frozen = new FrozenOutput(options.clock, this.#errors)
    this.#leftovers = new Leftovers(options.clock, options.log, this.#frozen)
    this.#spools = new SpoolWatch(options.clock, options.log, (execution) => this.#notify(execution))
    this.#slots = new Slots(options.maxExecutions)
    this.#supervision = new Supervision({
      ...options,
      errors: this.#errors,
      frozen: this.#frozen,
      running: (execution) => {
        this.#spools.add(execution)
        this.#notify(execution)
      },
      ended: (execution, complete) => this.#stepEnded(execution, complete),
      failed: (execution, error) => this.#fail(execution, error),
    })
    this.#phases = new Phases({
      ...options,
      errors: this.#errors,
      isStopped: () => this.#isStopped,
      over: (execution) => this.#unwatch(execution),
      start: (execution) => this.#startNextStep(execution),
      ended: (execution, complete) => this.#end(execution, complete),
    })
    this.permissions = new Permissions(options.clock, (execution) => void this.#resume(execution))
  }

  subscribe(events: Partial<RunnerEvents>): void {
    this.#listeners.push(events)
  }

  /** Recovers the executions of an earlier agent: ended, running, gone or queued. */
  async recover(): Promise<void> {
    const { directory, containment, limiter } = this.#options
    mkdirSync(directory, { recursive: true, mode: 0o711 })
    const found = await recovered(this.#options, this.#errors)
    for (const { execution, record } of found) {
      this.executions.set(execution.taskId, execution)
      if (record.complete) execution.ended(record.complete)
      else if (record.started || record.passed) this.#occupy(execution)
      else if (execution.permission === null) await this.#requeue(execution)
    }
    // Sweep before anything starts, because a start creates cgroups.
    const known = new Set([...this.executions.values()].map(({ taskId, step }) => identityOf(taskId, step)))
    for (const groups of [containment, limiter]) groups.sweep(known)
    const running = found.filter(({ execution }) => execution.state === 'RUNNING')
    // In parallel: ending a tree may take seconds, and the server waits for this agent.
    await Promise.all(running.map((each) => this.#supervision.takeUp(each.execution, each.record)))
    for (const { execution } of running) if (execution.started === null) this.#phases.advance(execution)
    await this.#leftovers.takeUp(directory, this.executions)
    this.#startNext()
  }

  /** Runs an order. Never rejects: an error becomes the result. Output begins in a later event loop turn. */
  async execute(order: Order, isTimeKnown = false): Promise<void> {
    const { journal, distrusted, verify, hearServerTime } = this.#options
    const { kind, ...message } = order
    const { taskId, mark, keyId } = message
    const active = this.executions.get(taskId)
    // Sent again: either side may have missed the other's message.
    if (active) {
      this.#reportReceived(active, order)
      return this.#events.changed(active)
    }
    const record = journal.records.get(taskId)
    // Any trace of a start counts, because a full disk may have kept the other lines out of the journal.
    const known = record && knownEnd(record, this.#now())
    if (known) return this.#events.answer(known)
    const doubt = verify(messageOf[kind], message)
    if (doubt !== null) {
      // The server's clock may have changed since: ask before refusing the order as old. Then start over,
      // because anything may have changed meanwhile (reliability F13).
      if (doubt.isTooOld && !isTimeKnown && (await hearServerTime())) return this.execute(order, true)
      distrusted(`${messageOf[kind]} ${taskId}`, doubt.reason)
      // Not journaled: otherwise a forged message could block the real one.
      return this.#events.answer(notRun(taskId, this.#now(), { error: doubt.reason }))
    }
    if (this.#isStopped) return
    if (mark && keyId) journal.noteMark(mark, keyId)
    const execution = new Execution(taskId, join(this.#options.directory, taskId))
    if (isGated(order)) Object.assign(execution, { isGated: true, gates: order })
    this.executions.set(taskId, execution)
    this.#events.counted()
    try {
      const refused = record?.cancelledAt ? cancelled : refusalOf(order, this.#options)
      if (refused) return this.#end(execution, notRun(taskId, this.#now(), refused))
      mkdirSync(execution.directory, { recursive: true, mode: 0o711 })
      if (this.#slots.isFree && !execution.isGated) return await this.#start(execution, order)
      await this.#untilStopped(this.#queue.add(execution, order))
      // A cancel during the write found nothing to remove from the queue.
      if (execution.isCancelled && this.#queue.remove(execution))
        return this.#end(execution, notRun(taskId, this.#now(), cancelled))
      this.#reportReceived(execution, order)
      this.#startNext()
    } catch (error) {
      this.#fail(execution, error)
    }
  }

  cancel(taskId: string): void {
    const { journal, log } = this.#options
    const execution = this.executions.get(taskId)
    // An upgrade that is switching versions must run until its result is known.
    if (execution?.state === 'EXITED' || (execution && isSwapped(execution.directory))) return
    // A half-done rollback is worse than a whole one or none.
    if (execution?.step.phase === 'ROLLBACK') return
    log('INFO', 'cancel', { taskId, state: execution?.state ?? 'unknown' })
    if (execution) {
      execution.isCancelled = true
      execution.run?.end('CANCELLED')
      if (execution.stopWaiting) this.#phases.advance(execution)
      if (
        this.#queue.remove(execution) ||
        (execution.state === 'QUEUED' && execution.permission === 'AWAITED')
      )
        this.#end(execution, notRun(taskId, this.#now(), cancelled))
    } else if (!journal.records.has(taskId) && journal.earlyCancels < maxEarlyCancels)
      this.#note({ e: 'cancelled', taskId, at: journal.now() })
  }

  /** Leaves a tombstone of an execution whose result is stored, or whose task the server does not know. */
  release(taskId: string): void {
    const execution = this.executions.get(taskId)
    if (execution?.state !== 'EXITED') return
    this.#note({ e: 'acknowledged', taskId, at: this.#options.journal.now() })
    this.executions.delete(taskId)
    this.#events.counted()
    execution.close()
    const { stdoutBytes = 0, stderrBytes = 0 } = execution.complete ?? {}
    this.#leftovers.add(execution.directory, stdoutBytes + stderrBytes)
  }

  /** Whether all remaining executions are queued, for the next agent to begin. */
  get isDrained(): boolean {
    return [...this.executions.values()].every(({ state }) => state === 'QUEUED')
  }

  /** Starts no more executions: they stay queued for the next agent or a cancel. Resolves when none runs. */
  drain(): Promise<void> {
    return this.#slots.drain()
  }

  /** Leaves running scripts to the next agent. Finishes starts in progress, because the journal has them. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#supervision.stop()
    this.permissions.unlinked()
    await Promise.allSettled(this.#starting)
    this.#spools.stop()
    this.#leftovers.stop()
    this.#frozen.stop()
    this.#cgroups.stop()
    for (const execution of this.executions.values()) {
      execution.stopWaiting?.()
      execution.run?.detach()
      execution.close()
    }
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString()
  }

  /** Never rejects. */
  #start(execution: Execution, order: Order): Promise<void> {
    return this.#untilStopped(this.#begin(execution, order)).catch((error: unknown) =>
      this.#fail(execution, error),
    )
  }

  /** Registers work that `stop` waits for, because it writes to the journal. */
  #untilStopped(work: Promise<void>): Promise<void> {
    const starting = work.finally(() => this.#starting.delete(starting))
    this.#starting.add(starting)
    return starting
  }

  async #begin(execution: Execution, order: Order): Promise<void> {
    if (execution.step.phase === 'SCRIPT') {
      this.#occupy(execution)
      this.#events.counted()
    }
    const never = await startStep(execution, orderOfStep(order, execution.step, execution.passed), {
      ...this.#options,
      errors: this.#errors,
      supervision: this.#supervision,
      durable: () => {
        execution.isDurable = true
        if (execution.step.phase === 'SCRIPT') this.#reportReceived(execution, order)
      },
    })
    if (never) this.#neverBegan(execution, never)
  }

  /** Ends an execution whose script did not begin; a gate that did not begin counts as an ended step. */
  #neverBegan(execution: Execution, complete: ScriptComplete): void {
    if (execution.step.phase === 'SCRIPT') this.#end(execution, complete)
    else this.#phases.passed(execution, complete)
  }

  #startNextStep(execution: Execution): void {
    const { gates } = execution
    if (this.#isStopped || gates === null) return
    this.#notify(execution)
    this.#events.reached(execution)
    void this.#start(execution, gates)
  }

  /** A server that gives no mark does not know the message. */
  #reportReceived(execution: Execution, { mark }: Order): void {
    if (mark && execution.isDurable && execution.state !== 'EXITED')
      this.#events.received(execution, this.#options.journal.sequence)
  }

  /** Listener errors must not affect the execution. */
  #notify(execution: Execution): void {
    this.#errors.attempt('could not report an execution', execution.taskId, () =>
      this.#events.changed(execution),
    )
  }

  #note(entry: Entry): void {
    this.#errors.attempt(refusesLine, entry.taskId, () => this.#options.journal.append(entry))
  }

  #fail(execution: Execution, error: unknown): void {
    if (execution.state === 'EXITED')
      return this.#errors.report('an ended execution failed', execution.taskId, error)
    const reason = error instanceof Error ? error.message : String(error)
    this.#options.log('ERROR', 'an execution failed', { taskId: execution.taskId, reason })
    const was = execution.run ? 'its result is unknown' : 'could not be started'
    const failed = notRun(execution.taskId, this.#now(), { error: `${was}: ${reason}` })
    if (execution.run) this.#stepEnded(execution, failed)
    else this.#neverBegan(execution, failed)
  }

  #stepEnded(execution: Execution, complete: ScriptComplete): void {
    if (execution.isGated) this.#phases.passed(execution, complete)
    else this.#end(execution, complete)
  }

  #unwatch(execution: Execution): void {
    this.#cgroups.remove(execution.started)
    this.#spools.remove(execution)
  }

  #end(execution: Execution, complete: ScriptComplete): void {
    const { journal, log } = this.#options
    const { taskId } = execution
    this.#unwatch(execution)
    if (execution.state === 'RUNNING') this.#slots.release()
    this.#queue.remove(execution)
    execution.isDurable = true
    execution.ended(complete)
    this.#events.counted()
    this.#note({ e: 'ended', taskId, complete })
    if (execution.isGated) dropOrder(execution, this.#errors)
    // Not awaited: if power fails first, the next agent reports LOST, because the boot id changed.
    journal.sync().catch((error: unknown) => log('ERROR', 'journal', { error: String(error) }))
    this.#notify(execution)
    this.#startNext()
  }

  #startNext(): void {
    while (!this.#isStopped && this.#slots.isFree) {
      const next = this.#queue.next()
      if (!next) return
      void this.#start(next.execution, next.order)
    }
  }

  async #requeue(execution: Execution): Promise<void> {
    if (await this.#queue.restore(execution)) return
    const lost = notRun(execution.taskId, this.#now(), { error: 'its script was lost from the disk' })
    this.#end(execution, lost)
  }

  /** Called when the server permits or refuses continuing an execution here. */
  async #resume(execution: Execution): Promise<void> {
    if (this.#isStopped) return
    if (execution.stopWaiting) return this.#phases.advance(execution)
    if (execution.state !== 'QUEUED') return
    if (execution.permission === 'REFUSED')
      return this.#end(execution, { ...notRun(execution.taskId, this.#now(), {}), ...notContinued })
    await this.#requeue(execution)
    this.#startNext()
  }

  #occupy(execution: Execution): void {
    this.#slots.take()
    execution.state = 'RUNNING'
  }
}
