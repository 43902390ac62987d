import { longestTimer } from '../../../core/protocol/bounds.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import { isoTime } from '../../../disk/clock.ts'
import type { Execution } from '../../storage/ports/executions.ts'
import type { Transaction } from '../../storage/ports/store.ts'
import type { ExecutionRecord, TaskRecord } from '../../storage/records/task.ts'
import type { Installs } from '../installs.ts'
import type { EngineParts } from '../parts.ts'
import { createSilence } from './silence.ts'
import { planOf, TaskRunner } from './task-runner.ts'
import { createUnreachable } from './unreachable.ts'

/** After a refused write (a full disk) the step is tried again. */
const retryAfter = 1000
/** An agent's first retry comes 5 s after it lost its server (contract §6), with jitter; this gives it time for two. */
const returnGrace = 15_000
/** Sweeps after which all tasks are looked at, whether they have changed or not. */
const sweepsToAll = 10
const tooManyFailed = 'not started: failure limit reached'

/**
 * The tasks that this server owns: carries out what their plans decide, starts, skips, pauses, ends, and gives up hosts. It
 * knows no link: another server may have it.
 */
export interface Scheduler {
  /**
   * Writes a new task, of which the first executions are due already, in one step with what `also` writes; as
   * Executions.create.
   */
  create<T>(
    task: TaskRecord,
    executions: readonly ExecutionRecord[],
    also: (tx: Transaction) => Promise<T | null>,
  ): Promise<T | null>
  /** Takes up running tasks that no living server owns, and leaves those that another one has taken. */
  takeOver(): Promise<void>
  /** These go on where they stood: a person has confirmed a restore. */
  resume(taskIds: Iterable<string>): void
  /** Ends what has waited too long. */
  sweep(): Promise<void>
  /** Looks at all tasks for what hints have lost. */
  sweepTasks(): Promise<void>
  /** Ends as LOST what has been silent for too long, and tells followers who is away. */
  sweepSilent(): Promise<void>
  close(): void
}

export function createScheduler(parts: EngineParts, installs: Installs): Scheduler {
  const { executions, ownership, member, store, clock } = parts
  const owned = new Map<string, TaskRunner>()
  const unreachable = createUnreachable(parts, owned, returnGrace)
  const silence = createSilence(parts, owned)
  /** The time of day when this process began, carried on without steps: no pause gets longer or shorter by one. */
  const base = clock.now() - clock.monotonic()
  /** The start may take longer than a sweep waits: until then nothing says which tasks a restore holds. */
  let isReady = false
  /** What has changed up to here was looked at by a sweep. */
  let cursor = 0
  let sweeps = 0
  const steadyNow = () => base + clock.monotonic()

  /** Steps of one task never overlap. */
  function poll(task: TaskRunner): void {
    task.isHinted = true
    if (task.polling || parts.isStopping()) return
    task.polling = pollWhileHinted(task).finally(() => {
      task.polling = null
    })
    parts.inBackground(task.polling, 'a step of a task')
  }

  async function pollWhileHinted(task: TaskRunner): Promise<void> {
    while (task.isHinted && owned.get(task.id) === task && !parts.isStopping()) {
      task.isHinted = false
      try {
        await takeStep(task)
      } catch (error) {
        task.isStale = true
        // One at a time: each sweep tries too, and what fails for minutes must not pile up retries.
        clearTimeout(task.retryTimer)
        task.retryTimer = setTimeout(() => poll(task), retryAfter).unref()
        throw error
      }
    }
  }

  /** After a decision that could not be carried out: what is on disk decides anew. */
  async function replan(task: TaskRunner): Promise<void> {
    const record = await store.get('tasks', task.id)
    const all = (await executions.ofTask(task.id)).map(({ execution }) => execution)
    task.isStale = false
    if (!record) return
    task.pauseUntil = record.pauseUntil
    task.plan = planOf(record, all)
    task.note(all, clock.monotonic())
  }

  async function takeStep(task: TaskRunner): Promise<void> {
    if (task.isStale) await replan(task)
    const { executions: changed, cursor } = await executions.changes(task.id, task.cursor)
    task.cursor = cursor
    for (const { position, status } of changed) if (isFinal(status)) task.plan.settled(position, status)
    task.note(changed, clock.monotonic())
    if (executions.held.has(task.id)) return finish(task)
    const { skip, start, pauseUntil, done } = task.plan.decide(steadyNow())
    if (skip.length > 0) parts.ended(await executions.skip(member, task.idsAt(skip), tooManyFailed))
    if (start.length > 0) await begin(task, await due(task, start))
    else if (task.type === 'INSTALL') await begin(task, [])
    await pause(task, pauseUntil)
    if (done) await finish(task)
  }

  async function due(task: TaskRunner, positions: readonly number[]): Promise<Execution[]> {
    const changed = await executions.due(member, task.idsAt(positions))
    task.note(changed, clock.monotonic())
    return changed
  }

  /** What is due on a host waits for its link, or is done over SSH. */
  function begin(task: TaskRunner, due: readonly Execution[]): Promise<void> {
    return task.type === 'INSTALL' ? installs.reconcile(task.id) : unreachable.poll(due)
  }

  async function pause(task: TaskRunner, until: number | null): Promise<void> {
    const pauseUntil = until === null ? null : isoTime(until)
    if (task.pauseUntil !== pauseUntil) await executions.pause(member, task.id, pauseUntil)
    task.pauseUntil = pauseUntil
    clearTimeout(task.pauseTimer)
    if (until === null || parts.isStopping()) return
    const wait = Math.min(Math.max(0, until - steadyNow()), longestTimer)
    task.pauseTimer = setTimeout(() => poll(task), wait)
  }

  async function finish(task: TaskRunner): Promise<void> {
    const final = await executions.finish(member, task.id, await parts.webhookEvents.endOfTask(task.id))
    if (!final) return
    forget(task)
    await ownership.release(member, [task.id])
    parts.facts.publish('taskEnded', { taskId: task.id, status: final.status })
  }

  function forget(task: TaskRunner): void {
    clearTimeout(task.pauseTimer)
    owned.delete(task.id)
  }

  async function takeUp(taskId: string): Promise<void> {
    const { cursor } = await executions.changes(taskId, Number.POSITIVE_INFINITY)
    const record = await store.get('tasks', taskId)
    const all = (await executions.ofTask(taskId)).map(({ execution }) => execution)
    if (record?.status !== 'RUNNING' || all.length === 0 || owned.has(taskId)) return
    const task = new TaskRunner(record, all, planOf(record, all), clock.monotonic())
    task.cursor = cursor
    task.graceUntil = clock.monotonic() + returnGrace
    owned.set(taskId, task)
    poll(task)
  }

  async function takeOver(): Promise<void> {
    const before = [...owned.values()]
    const mine = new Set(await ownership.claim(member, await executions.running()))
    for (const task of before) if (!mine.has(task.id)) forget(task)
    for (const taskId of mine) if (!owned.has(taskId)) await takeUp(taskId)
  }

  /** Of owned tasks those that have changed; from time to time all of them. */
  function tasksToPoll(changed: readonly string[]): TaskRunner[] {
    sweeps++
    if (sweeps % sweepsToAll === 0) return [...owned.values()]
    return changed.flatMap((taskId) => owned.get(taskId) ?? [])
  }

  const unsubscribe = [
    parts.hints.subscribe('task', null, ({ id }) => {
      const task = owned.get(id)
      if (task) poll(task)
    }),
    parts.hints.subscribe('server', null, () => {
      if (isReady && !parts.isStopping()) parts.inBackground(takeOver(), 'taking over tasks')
    }),
  ]

  return {
    async create(record, given, also) {
      const plan = planOf(record, given)
      const first = new Set(plan.decide(steadyNow()).start)
      const dueAt = isoTime(clock.now())
      const all = given.map((execution) =>
        first.has(execution.position) ? { ...execution, dueAt } : execution,
      )
      await ownership.claim(member, [record.id])
      let isCreated = false
      try {
        const other = await executions.create(record, all, also)
        isCreated = other === null
        if (!isCreated) return other
      } finally {
        if (!isCreated) await ownership.release(member, [record.id])
      }
      const task = new TaskRunner(record, all, plan, clock.monotonic())
      owned.set(record.id, task)
      const due = all.filter((execution) => execution.dueAt !== null)
      parts.inBackground(begin(task, due), 'a beginning of a task')
      return null
    },

    takeOver() {
      isReady = true
      return takeOver()
    },

    resume(taskIds) {
      for (const taskId of taskIds) {
        const task = owned.get(taskId)
        if (!task) continue
        forget(task)
        parts.inBackground(takeUp(taskId), 'going on after a restore')
      }
    },

    sweep: () => unreachable.sweep(),
    sweepSilent: () => silence.sweep(),
    async sweepTasks() {
      if (!isReady || store.readOnlyReason !== null) return
      await takeOver()
      const changed = await executions.changedTasks([...owned.keys()], cursor)
      cursor = changed.cursor
      for (const task of tasksToPoll(changed.taskIds)) poll(task)
    },
    close() {
      for (const end of unsubscribe) end()
      for (const task of owned.values()) clearTimeout(task.pauseTimer)
    },
  }
}
