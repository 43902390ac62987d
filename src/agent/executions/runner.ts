import { mkdirSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import { doubtOf, type Order, typeOf } from '../files/order.ts'
import { ThrottledErrors } from '../log.ts'
import { CgroupLeftovers } from '../processes/cgroups.ts'
import { mayBeShared } from '../processes/origin.ts'
import { isSwapped } from '../upgrade/order.ts'
import { Execution, knownEnd, Leave, notContinued, notRun } from './execution.ts'
import { ExecutionQueue, keptRequest, Slots } from './execution-queue.ts'
import { HeldOutput, Leftovers } from './held-output.ts'
import type { JournaledExecution, Started } from './journaled.ts'
import { SpoolWatch } from './output/spool-watch.ts'
import { Phases } from './phases.ts'
import { neverBegan } from './recovery.ts'
import type { RunnerEvents, RunnerOptions } from './runner-options.ts'
import { refusalOf, startStep } from './starting.ts'
import { identityOf, isGated, placeOf, requestOf, stepOf } from './steps.ts'
import { JournalWriter, Supervision } from './supervision.ts'

const mostEarlyCancels = 10_000

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
  readonly #cgroups = new CgroupLeftovers()
  readonly #starting = new Set<Promise<void>>()
  #isStopped = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#queue = new ExecutionQueue(options)
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

  /** Takes up what an earlier agent left: ended, still running, gone, or not yet begun. */
  async recover(): Promise<void> {
    const { journal, directory, machine } = this.#options
    mkdirSync(directory, { recursive: true, mode: 0o711 })
    const adopted: [Execution, JournaledExecution, Started][] = []
    const between: Execution[] = []
    for (const record of journal.records.values()) {
      const execution = new Execution(record.taskId, join(directory, record.taskId))
      const place = placeOf(execution.directory, stepOf(record))
      if (neverBegan(record, place, machine)) this.#journalWriter.withdraw(record.taskId)
      if (record.acknowledgedAt || !(record.received || record.started || record.complete)) continue
      execution.isDurable = true
      this.executions.set(record.taskId, execution)
      if (mayBeShared(record.origin, execution.directory, machine)) execution.leave = 'AWAITED'
      await this.#restoreGates(execution, record)
      if (record.complete) execution.ended(record.complete)
      else if (record.started) adopted.push([execution, record, record.started])
      else if (record.passed) between.push(execution)
      else if (execution.leave === null) await this.#requeue(execution)
    }
    // Before anything starts, which makes its own.
    const known = new Set([...this.executions.values()].map(({ taskId, step }) => identityOf(taskId, step)))
    for (const groups of [this.#options.containment, this.#options.limiter]) groups.sweep(known)
    // All at once: a tree that has still to be ended may take seconds, and the server waits to hear of this agent.
    await Promise.all(adopted.map((found) => this.#adopt(...found)))
    for (const execution of between) {
      this.#slots.take()
      execution.state = 'RUNNING'
      this.#phases.goOn(execution)
    }
    const entries = await readdir(directory, { withFileTypes: true })
    const pathOf = ({ name }: { name: string }) => join(directory, name)
    const running = [...this.executions.values()].filter(({ state }) => state === 'RUNNING')
    const directories = entries.filter((entry) => entry.isDirectory()).map(pathOf)
    this.#held.find(directories, new Set(running.map(({ place }) => place)))
    for (const entry of entries.filter(({ name }) => !this.executions.has(name))) {
      const path = pathOf(entry)
      if (this.#held.holds(path)) this.#leftovers.remove(path)
      else await rm(path, { recursive: true, force: true })
    }
    this.#startNext()
  }

  /** Never rejects: what goes wrong is the result. Output begins only after a return to the event loop. */
  async execute(request: Order, isTimeKnown = false): Promise<void> {
    const { journal, distrusted } = this.#options
    const { taskId } = request
    const active = this.executions.get(taskId)
    if (active) return this.#receivedBefore(active, request)
    const record = journal.records.get(taskId)
    // Any trace of a start counts: a full disk may have kept the other lines out of the journal.
    const known = record && knownEnd(record, this.#now())
    if (known) return this.#events.answer(known)
    const doubt = doubtOf(request, this.#options.verify)
    if (doubt !== null) {
      // The server's clock may have been set since it was last heard: then it is asked before this counts as old, and all
      // that could have changed meanwhile is looked at again (reliability F13).
      if (doubt.isTooOld && !isTimeKnown && (await this.#options.hearServerTime()))
        return this.execute(request, true)
      distrusted(`${typeOf(request)} ${taskId}`, doubt.reason)
      // Not journalled: else a forged message could keep the true one from running.
      return this.#events.answer(notRun(taskId, this.#now(), { error: doubt.reason }))
    }
    if (this.#isStopped) return
    if (request.mark && request.keyId) journal.heard(request.mark, request.keyId)
    const execution = new Execution(taskId, join(this.#options.directory, taskId))
    if (isGated(request)) Object.assign(execution, { isGated: true, gates: request })
    this.executions.set(taskId, execution)
    this.#events.counted()
    try {
      if (record?.cancelledAt)
        return this.#end(execution, notRun(taskId, this.#now(), { status: 'CANCELLED' }))
      const refused = refusalOf(request, this.#options)
      if (refused) return this.#end(execution, notRun(taskId, this.#now(), refused))
      mkdirSync(execution.directory, { recursive: true, mode: 0o711 })
      if (this.#slots.isFree && !execution.isGated) return await this.#start(execution, request)
      await this.#untilStopped(this.#queue.add(execution, request))
      // A cancel that came while its copy was written found nothing to take out of the queue.
      if (execution.isCancelled && this.#queue.remove(execution))
        return this.#end(execution, notRun(taskId, this.#now(), { status: 'CANCELLED' }))
      this.#sayReceived(execution, request)
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
        this.#end(execution, notRun(taskId, this.#now(), { status: 'CANCELLED' }))
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

  /** Removes the cgroups whose last process has ended since; to be called now and then. */
  sweep(): void {
    this.#cgroups.sweep()
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
    this.#cgroups.sweep()
    for (const execution of this.executions.values()) {
      execution.stopWaiting?.()
      execution.run?.leave()
      execution.close()
    }
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString()
  }

  #start(execution: Execution, request: Order): Promise<void> {
    return this.#untilStopped(this.#begin(execution, request))
  }

  /** What is to be in the journal before it closes. */
  #untilStopped(work: Promise<void>): Promise<void> {
    const starting = work.finally(() => this.#starting.delete(starting))
    this.#starting.add(starting)
    return starting
  }

  async #begin(execution: Execution, request: Order): Promise<void> {
    if (execution.step.phase === 'SCRIPT') {
      this.#slots.take()
      execution.state = 'RUNNING'
      this.#events.counted()
    }
    const toRun = requestOf(request, execution.step, execution.passed)
    const never = await startStep(execution, toRun, {
      ...this.#options,
      journalWriter: this.#journalWriter,
      supervision: this.#supervision,
      durable: () => {
        execution.isDurable = true
        if (execution.step.phase === 'SCRIPT') this.#sayReceived(execution, request)
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
  #receivedBefore(execution: Execution, request: Order): void {
    this.#sayReceived(execution, request)
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
    if (execution.isGated) this.#journalWriter.dropCopy(execution)
    // Not waited for: if the power goes before it is on disk, the next agent says LOST, as the boot id has changed.
    journal.sync().catch((error: unknown) => log('ERROR', 'journal', { error: String(error) }))
    this.#tell(execution)
    this.#startNext()
  }

  #startNext(): void {
    while (!this.#isStopped && this.#slots.isFree) {
      const next = this.#queue.next()
      if (!next) return
      this.#start(next.execution, next.request).catch((error: unknown) => this.#fail(next.execution, error))
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

  /** What an earlier agent has left of an execution with gates. */
  async #restoreGates(execution: Execution, record: JournaledExecution): Promise<void> {
    if (!record.isGated) return
    execution.isGated = true
    execution.step = stepOf(record)
    execution.passed.push(...(record.passed ?? []))
    if (record.complete) this.#journalWriter.dropCopy(execution)
    else execution.gates = await keptRequest(execution.directory)
  }

  /** Never rejects. */
  async #adopt(execution: Execution, record: JournaledExecution, started: Started): Promise<void> {
    this.#slots.take()
    execution.started = started
    execution.state = 'RUNNING'
    await this.#supervision.takeUp(execution, record, started)
  }
}
