import { longestTimer } from '../../../core/protocol/bounds.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import { isoTime } from '../../../disk/clock.ts'
import { asDue, asSkipped } from '../../storage/executions/transitions.ts'
import type { Execution } from '../../storage/ports/executions.ts'
import type { Transaction } from '../../storage/ports/store.ts'
import type { ExecutionRecord, TaskRecord } from '../../storage/records/task.ts'
import type { Installs } from '../installs.ts'
import type { EngineParts } from '../parts.ts'
import { createSilence, createUnreachable } from './silence.ts'
import { planOf, TaskRunner } from './task-runner.ts'

/** Milliseconds before a step is retried after a refused write (full disk). */
const retryAfter = 1000
/**
 * Milliseconds. Agents first retry 5 s after losing their server, with jitter (contract §6); allows two
 * retries.
 */
const returnGrace = 15_000
/** Sweeps between checks of all tasks, changed or not. */
const sweepsToAll = 10
const tooManyFailed = 'not started: failure limit reached'

/**
 * The tasks that this server owns: carries out their plans, starts, skips, pauses and ends executions, and
 * gives up hosts. It knows no links, because another server may have them.
 */
export interface Scheduler {
  /**
   * Writes a new task with its first executions due, together with `also`; same result as Executions.create.
   */
  create<T>(
    task: TaskRecord,
    executions: readonly ExecutionRecord[],
    also: (tx: Transaction) => Promise<T | null>,
  ): Promise<T | null>
  /** Takes over running tasks that no living server owns; drops those that another server took. */
  takeOver(): Promise<void>
  /** Continues these tasks after a restore was confirmed. */
  resume(taskIds: Iterable<string>): void
  /** Ends executions that waited too long. */
  sweep(): Promise<void>
  /** Checks all tasks in case hints were lost. */
  sweepTasks(): Promise<void>
  /** Ends silent executions as LOST, and tells followers which hosts are disconnected. */
  sweepSilent(): Promise<void>
  close(): void
}

export function createScheduler(parts: EngineParts, installs: Installs): Scheduler {
  const { executions, ownership, member, store, clock } = parts
  const owned = new Map<string, TaskRunner>()
  const unreachable = createUnreachable(parts, owned, returnGrace)
  const silence = createSilence(parts, owned)
  /** Wall clock at process start; adding the monotonic clock keeps clock steps from changing a pause. */
  const base = clock.now() - clock.monotonic()
  /** False until takeOver is called: until then it is unknown which tasks a restore holds. */
  let isReady = false
  /** Change cursor of the last sweep. */
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
        // At most one timer, because sweeps retry too.
        clearTimeout(task.retryTimer)
        task.retryTimer = setTimeout(() => poll(task), retryAfter).unref()
        throw error
      }
    }
  }

  /** Rebuilds the plan from the store after a failed step. */
  async function replan(task: TaskRunner): Promise<void> {
    const record = await store.get('tasks', task.id)
    const all = (await executions.page(task.id)).map(({ execution }) => execution)
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
    if (skip.length > 0)
      parts.ended(await executions.transition(asSkipped(member, task.idsAt(skip), tooManyFailed)))
    if (start.length > 0) await begin(task, await due(task, start))
    else if (task.type === 'INSTALL') await begin(task, [])
    await pause(task, pauseUntil)
    if (done) await finish(task)
  }

  async function due(task: TaskRunner, positions: readonly number[]): Promise<Execution[]> {
    const changed = await executions.transition(asDue(member, task.idsAt(positions)))
    task.note(changed, clock.monotonic())
    return changed
  }

  /** Due executions wait for the host's link, or run over SSH. */
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
    const all = (await executions.page(taskId)).map(({ execution }) => execution)
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

  /** Owned tasks that changed; periodically all of them. */
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
      parts.inBackground(begin(task, due), 'starting a task')
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
        parts.inBackground(takeUp(taskId), 'continuing after a restore')
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
