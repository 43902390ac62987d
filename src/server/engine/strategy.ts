import { faultPoint } from '#fault-point'
import { longestTimer } from '../../core/protocol/bounds.ts'
import { finalTaskStatus } from '../../core/task/task-state.ts'
import { isoTime } from '../clock.ts'
import type { Dispatcher } from './dispatcher.ts'
import { type EngineState, ended } from './state.ts'
import type { TaskRun } from './task-run.ts'

/** After a refused write (a full disk) the step is tried again. */
const retryAfter = 1000

/** Carries out what the plan decides: starts, skips, pauses, ends the task. Steps of one task never overlap. */
export interface Strategy {
  step(run: TaskRun): void
}

export function createStrategy(state: EngineState, dispatcher: Dispatcher): Strategy {
  /** The time of day when this process began, carried on without steps: no pause gets longer or shorter by one. */
  const base = state.clock.now() - state.clock.monotonic()
  const steadyNow = () => base + state.clock.monotonic()

  async function finish(run: TaskRun): Promise<void> {
    // A cancel is on disk before the run hears of it.
    const stored = await state.store.get('tasks', run.task.id)
    const task = { ...run.task, cancelRequestedAt: stored?.cancelRequestedAt ?? run.task.cancelRequestedAt }
    const status = finalTaskStatus(run.counts, task.cancelRequestedAt !== null)
    if (status === null) return
    const now = state.clock.now()
    const started = task.startedAt ?? task.createdAt
    faultPoint('server.archived.before')
    await state.results.write(task.id, { script: task.content ?? '', results: run.results() })
    faultPoint('server.archived.after')
    const final = {
      ...task,
      status,
      counts: { ...run.counts },
      content: null,
      secretParams: null,
      pauseUntil: null,
      completedAt: isoTime(Math.max(now, Date.parse(started))),
      duration: Math.max(0, now - Date.parse(started)),
    }
    faultPoint('server.final.before')
    await state.store.transact((tx) => {
      tx.put('tasks', final)
      for (const execution of run.executions) tx.remove('executions', execution.id)
    })
    faultPoint('server.final.after')
    run.task = final
    state.runs.delete(task.id)
    if (run.pauseTimer) clearTimeout(run.pauseTimer)
    await state.outputs.finish(task.id)
    state.facts.publish('taskEnded', { taskId: task.id, status })
    state.hints.publish('task', { id: task.id, hostId: null, change: 'updated' })
    run.markFinished()
  }

  async function takeStep(run: TaskRun): Promise<void> {
    if (state.stopping || run.task.status !== 'RUNNING') return
    if (state.held.has(run.task.id)) return finish(run)
    const now = state.clock.now()
    const decision = run.plan.decide(steadyNow())
    const at = isoTime(now)
    if (decision.skip.length > 0) {
      const why = 'not started: too many hosts had failed before it'
      faultPoint('server.skipped.before')
      await state.change(run, decision.skip, (current) =>
        current.status === 'PENDING' ? ended(current, 'SKIPPED', at, why) : null,
      )
      faultPoint('server.skipped.after')
    }
    if (decision.start.length > 0) await dispatcher.offer(run, decision.start)
    await pause(run, decision.pauseUntil)
    if (decision.done) await finish(run)
  }

  async function pause(run: TaskRun, until: number | null): Promise<void> {
    const pauseUntil = until === null ? null : isoTime(until)
    if (run.task.pauseUntil !== pauseUntil) {
      const task = { ...run.task, pauseUntil }
      faultPoint('server.paused.before')
      await state.store.transact(async (tx) => {
        const current = await tx.get('tasks', task.id)
        if (current) tx.put('tasks', { ...current, pauseUntil })
      })
      faultPoint('server.paused.after')
      run.task = { ...run.task, pauseUntil }
    }
    if (run.pauseTimer) clearTimeout(run.pauseTimer)
    run.pauseTimer = null
    if (until === null || state.stopping) return
    const wait = Math.min(Math.max(0, until - steadyNow()), longestTimer)
    run.pauseTimer = setTimeout(() => step(run), wait)
  }

  function step(run: TaskRun): void {
    run.stepping = run.stepping
      .then(() => takeStep(run))
      .catch((error: unknown) => {
        if (state.stopping) return
        state.log.warn({ err: error, taskId: run.task.id }, 'a step of the task failed; trying again')
        run.planAnew()
        setTimeout(() => step(run), retryAfter).unref()
      })
  }

  return { step }
}
