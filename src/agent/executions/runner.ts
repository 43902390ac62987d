import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import { messageOf, type Order } from '../../core/protocol/orders.ts'
import { ThrottledErrors } from '../log.ts'
import { CgroupLeftovers } from '../processes/cgroups.ts'
import { isSwapped } from '../upgrade/order.ts'
import { Execution, knownEnd, Leave, notContinued, notRun } from './execution.ts'
import { ExecutionQueue, Slots } from './execution-queue.ts'
import { HeldOutput, Leftovers } from './held-output.ts'
import type { JournaledExecution, Started } from './journaled.ts'
import { SpoolWatch } from './output/spool-watch.ts'
import { Phases } from './phases.ts'
import { neverBegan, restored } from './recovery.ts'
import type { RunnerEvents, RunnerOptions } from './runner-options.ts'
import { refusalOf, startStep } from './starting.ts'
import { identityOf, isGated, orderOfStep, placeOf, stepOf } from './steps.ts'
import { JournalWriter, Supervision } from './supervision.ts'

const mostEarlyCancels = 10_000
const cancelled = { status: 'CANCELLED' } as const

/** Runs what the server sends, each at most once, and knows all that is not yet acknowledged (contract §4). */
export class Runner {
  readonly executions: Map<string, Execution> = new Map()
  readonly #options: RunnerOptions
  readonly #queue: ExecutionQueue
  readonly #spools: SpoolWatch
  readonly #held: HeldOutput
  readonly #leftovers: Leftovers
  readonly #errors: ThrottledErrors
  readonly #journalWriter: JournalWriter
  readonly #slots: Slots
  readonly #supervision: Supervision
  readonly #phases: Phases
  readonly #leave: Leave
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
    this.#queue = new ExecutionQueue(options)
    this.#cgroups = new CgroupLeftovers(options.clock)
    this.#errors = new ThrottledErrors(options.clock, options.log)
    this.#held = new HeldOutput(options.clock, this.#errors)
    this.#leftovers = new Leftovers(options.clock, options.log, this.#held)
    this.#spools = new SpoolWatch(
      options.clock,
      (execution) => this.#tell(execution),
      (error) =>
        options.log('WARN', 'spools are looked at, as they cannot be watched', { error: String(error) }),
    )
    this.#journalWriter = new JournalWriter(options.journal, options.log, this.#errors)
    this.#slots = new Slots(options.maxExecutions)
    this.#supervision = new Supervision({
      ...options,
      journalWriter: this.#journalWriter,
      errors: this.#errors,
      held: this.#held,
      running: (execution) => {
        this.#spools.add(execution)
        this.#tell(execution)
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
    this.#leave = new Leave({
      clock: options.clock,
      given: (execution) => void this.#goOn(execution),
      refused: (execution) => void this.#goOn(execution),
    })
  }

  subscribe(events: Partial<RunnerEvents>): void {
    this.#listeners.push(events)
  }

  /** Takes up the executions of an earlier agent: ended, still running, gone, or not yet begun. */
  async recover(): Promise<void> {
    const { journal, directory, machine, containment, limiter } = this.#options
    mkdirSync(directory, { recursive: true, mode: 0o711 })
    const begun: [Execution, JournaledExecution, Started][] = []
    const between: Execution[] = []
    for (const record of journal.records.values()) {
      const path = join(directory, record.taskId)
      const isUnbegun = neverBegan(record, placeOf(path, stepOf(record)), machine)
      if (isUnbegun) this.#journalWriter.withdraw(record.taskId)
      const { taskId, received, started, passed, complete, acknowledgedAt } = record
      if (acknowledgedAt || !(received || started || complete)) continue
      const execution = await restored(record, path, machine)
      this.executions.set(taskId, execution)
      if (complete && execution.isGated) this.#journalWriter.dropOrder(execution)
      if (complete) execution.ended(complete)
      else if (started) begun.push([execution, record, started])
      else if (passed) between.push(execution)
      else if (execution.leave === null) await this.#requeue(execution)
    }
    // Before anything starts, which makes its own.
    const known = new Set([...this.executions.values()].map(({ taskId, step }) => identityOf(taskId, step)))
    for (const groups of [containment, limiter]) groups.sweep(known)
    // All at once: a tree that has still to be ended may take seconds, and the server waits to hear of this agent.
    await Promise.all(
      begun.map(([execution, record, started]) => {
        this.#occupy(execution)
        execution.started = started
        return this.#supervision.takeUp(execution, record, started)
      }),
    )
    for (const execution of between) {
      this.#occupy(execution)
      this.#phases.goOn(execution)
    }
    await this.#leftovers.takeUp(directory, this.executions)
    this.#startNext()
  }

  /** Takes an order; never rejects: an error is the result. Output begins only after a return to the event loop. */
  async execute(order: Order, isTimeKnown = false): Promise<void> {
    const { journal, distrusted, verify, hearServerTime } = this.#options
    const { kind, ...message } = order
    const { taskId, mark, keyId } = message
    const active = this.executions.get(taskId)
    if (active) return this.#receivedBefore(active, order)
    const record = journal.records.get(taskId)
    // Any trace of a start counts: a full disk may have kept the other lines out of the journal.
    const known = record && knownEnd(record, this.#now())
    if (known) return this.#events.answer(known)
    const doubt = verify(messageOf[kind], message)
    if (doubt !== null) {
      // The server's clock may have been set since it was last heard: ask before this counts as old, and begin again, because
      // anything may have changed meanwhile (reliability F13).
      if (doubt.isTooOld && !isTimeKnown && (await hearServerTime())) return this.execute(order, true)
      distrusted(`${messageOf[kind]} ${taskId}`, doubt.reason)
      // Not journalled: else a forged message could keep the true one from running.
      return this.#events.answer(notRun(taskId, this.#now(), { error: doubt.reason }))
    }
    if (this.#isStopped) return
    if (mark && keyId) journal.heard(mark, keyId)
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
      // A cancel that came while its order was written found nothing to take out of the queue.
      if (execution.isCancelled && this.#queue.remove(execution))
        return this.#end(execution, notRun(taskId, this.#now(), cancelled))
      this.#sayReceived(execution, order)
      this.#startNext()
    } catch (error) {
      this.#fail(execution, error)
    }
  }

  cancel(taskId: string): void {
    const { journal, log } = this.#options
    const execution = this.executions.get(taskId)
    // One that changes which version runs goes on until it is known which.
    if (execution?.state === 'EXITED' || (execution && isSwapped(execution.directory))) return
    // Half a rollback is worse than either.
    if (execution?.step.phase === 'ROLLBACK') return
    log('INFO', 'cancel', { taskId, state: execution?.state ?? 'unknown' })
    if (execution) {
      execution.isCancelled = true
      execution.run?.end('CANCELLED')
      if (execution.stopWaiting) this.#phases.goOn(execution)
      if (this.#queue.remove(execution) || (execution.state === 'QUEUED' && execution.leave === 'AWAITED'))
        this.#end(execution, notRun(taskId, this.#now(), cancelled))
    } else if (!journal.records.has(taskId) && journal.earlyCancels < mostEarlyCancels)
      this.#journalWriter.add({ e: 'cancelled', taskId, at: journal.now() })
  }

  /** The server has answered the HELLO that named it; `isRefused`: nothing of it may start any more. */
  answered(taskId: string, isRefused: boolean): void {
    const execution = this.executions.get(taskId)
    if (execution) this.#leave.answered(execution, isRefused)
  }

  unlinked(): void {
    this.#leave.unlinked()
  }

  /** The server has stored the end, or knows nothing of the task: what remains is a tombstone. */
  release(taskId: string): void {
    const execution = this.executions.get(taskId)
    if (execution?.state !== 'EXITED') return
    this.#journalWriter.add({ e: 'acknowledged', taskId, at: this.#options.journal.now() })
    this.executions.delete(taskId)
    this.#events.counted()
    execution.close()
    const { stdoutBytes = 0, stderrBytes = 0 } = execution.complete ?? {}
    this.#leftovers.add(execution.directory, stdoutBytes + stderrBytes)
  }

  /** Whether nothing but what the next agent will begin waits for the server. */
  get isDrained(): boolean {
    return [...this.executions.values()].every(({ state }) => state === 'QUEUED')
  }

  /** None begins from now on: what comes waits for the next agent, or its cancel. Settles when none runs. */
  drain(): Promise<void> {
    return this.#slots.drain()
  }

  /** Leaves what runs to the next agent; what was about to start does so first, as the journal says that it did. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#supervision.stop()
    this.#leave.unlinked()
    await Promise.allSettled(this.#starting)
    this.#spools.stop()
    this.#leftovers.stop()
    this.#held.stop()
    this.#cgroups.stop()
    for (const execution of this.executions.values()) {
      execution.stopWaiting?.()
      execution.run?.leave()
      execution.close()
    }
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString()
  }

  #start(execution: Execution, order: Order): Promise<void> {
    return this.#untilStopped(this.#begin(execution, order))
  }

  /** What is to be in the journal before it closes. */
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
      journalWriter: this.#journalWriter,
      supervision: this.#supervision,
      durable: () => {
        execution.isDurable = true
        if (execution.step.phase === 'SCRIPT') this.#sayReceived(execution, order)
      },
    })
    if (never) this.#neverBegan(execution, never)
  }

  /** Nothing follows on a script that has not begun. */
  #neverBegan(execution: Execution, complete: ScriptComplete): void {
    if (execution.step.phase === 'SCRIPT') this.#end(execution, complete)
    else this.#phases.passed(execution, complete)
  }

  #startNextStep(execution: Execution): void {
    const { gates } = execution
    if (this.#isStopped || gates === null) return
    this.#tellReached(execution)
    this.#start(execution, gates).catch((error: unknown) => this.#fail(execution, error))
  }

  /** It was sent again: either side may have missed the other's word. */
  #receivedBefore(execution: Execution, order: Order): void {
    this.#sayReceived(execution, order)
    this.#events.changed(execution)
  }

  /** A server that gives no mark does not know the message. */
  #sayReceived(execution: Execution, { mark }: Order): void {
    if (mark && execution.isDurable && execution.state !== 'EXITED')
      this.#events.received(execution, this.#options.journal.sequence)
  }

  /** Nobody's trouble with the news changes what happened. */
  #tell(execution: Execution): void {
    try {
      this.#events.changed(execution)
    } catch (error) {
      this.#errors.tell('an execution could not be looked at', execution.taskId, error)
    }
  }

  #tellReached(execution: Execution): void {
    this.#tell(execution)
    this.#events.reached(execution)
  }

  #fail(execution: Execution, error: unknown): void {
    if (execution.state === 'EXITED')
      return this.#errors.tell('an ended execution failed', execution.taskId, error)
    const reason = error instanceof Error ? error.message : String(error)
    this.#options.log('ERROR', 'an execution failed', { taskId: execution.taskId, reason })
    const was = execution.run ? 'its end could not be told' : 'could not be started'
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
    this.#journalWriter.add({ e: 'ended', taskId, complete })
    if (execution.isGated) this.#journalWriter.dropOrder(execution)
    // Not waited for: if the power goes before it is on disk, the next agent says LOST, as the boot id has changed.
    journal.sync().catch((error: unknown) => log('ERROR', 'journal', { error: String(error) }))
    this.#tell(execution)
    this.#startNext()
  }

  #startNext(): void {
    while (!this.#isStopped && this.#slots.isFree) {
      const next = this.#queue.next()
      if (!next) return
      this.#start(next.execution, next.order).catch((error: unknown) => this.#fail(next.execution, error))
    }
  }

  async #requeue(execution: Execution): Promise<void> {
    if (await this.#queue.restore(execution)) return
    const lost = notRun(execution.taskId, this.#now(), { error: 'its script was lost from the disk' })
    this.#end(execution, lost)
  }

  /** The server has said whether it may continue here. */
  async #goOn(execution: Execution): Promise<void> {
    if (this.#isStopped) return
    if (execution.stopWaiting) return this.#phases.goOn(execution)
    if (execution.state !== 'QUEUED') return
    if (execution.leave === 'REFUSED')
      return this.#end(execution, { ...notRun(execution.taskId, this.#now(), {}), ...notContinued })
    await this.#requeue(execution)
    this.#startNext()
  }

  #occupy(execution: Execution): void {
    this.#slots.take()
    execution.state = 'RUNNING'
  }
}
