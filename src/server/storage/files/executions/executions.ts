import { faultPoint } from '#fault-point'
import { isFinal } from '../../../../core/tasks/task.ts'
import { settled } from '../../executions/ends.ts'
import { asBegun, asOwnEnd, asReached, asTruncated } from '../../executions/transitions.ts'
import { gateOf } from '../../output-line.ts'
import type { Executions } from '../../ports/executions.ts'
import { partOf } from '../results.ts'
import { createEnds } from './ends.ts'
import { createSending } from './sending.ts'
import { type ExecutionsDependencies, Steps } from './steps.ts'
import { createTaskSteps } from './task-steps.ts'

/** Executions in the file store: durable records, and the state of running tasks in memory. */
export async function openExecutions(deps: ExecutionsDependencies): Promise<Executions> {
  const { store, outputs } = deps
  const steps = new Steps(deps)
  const { tasks, held } = steps
  for (const task of await store.find('tasks', 'status', 'RUNNING')) {
    const executions = await store.find('executions', 'taskId', task.id)
    tasks.add(task, executions, await outputs.progress(task.id))
  }
  return {
    ...createTaskSteps(steps),
    /** Writes the record before the host is contacted, so that a crash makes it LOST, not started twice. */
    begin: (by, ids) => steps.changeOwned(by, 'sent', ids, steps.unlessHeld(asBegun(steps.now()))),
    end: (by, id, end) => steps.changeOwned(by, 'settled', [id], asOwnEnd(end, steps.now())),
    ...createSending(steps),
    ...createReceiving(steps),
    ...createEnds(deps, tasks),
    ...createQueries(steps),
    held,
    async hold(taskIds) {
      for (const taskId of taskIds) if ((tasks.get(taskId)?.counts.PENDING ?? 0) > 0) held.add(taskId)
    },
    release: async () => held.clear(),
    close: () => steps.acks.close(),
  }
}

function createQueries({
  tasks,
  isWaiting,
  deps: { store },
}: Steps): Pick<
  Executions,
  | 'transactWithOpen'
  | 'find'
  | 'ofHosts'
  | 'ofTask'
  | 'ofHost'
  | 'waiting'
  | 'waitingOn'
  | 'counts'
  | 'changes'
  | 'changedTasks'
  | 'running'
  | 'load'
> {
  return {
    transactWithOpen: (hostId, work) =>
      store.transact(async (tx) => {
        const all = await tx.find('executions', 'hostId', hostId)
        return work(tx, all.filter(({ status }) => !isFinal(status)).length)
      }),
    async find(taskId, hostId) {
      const task = tasks.get(taskId)
      const execution = task?.ofHost(hostId)
      return execution && task?.withOutput(execution)
    },
    async ofHosts(taskId, hostIds) {
      const task = tasks.get(taskId)
      return hostIds.flatMap((hostId) => {
        const execution = task?.ofHost(hostId)
        return task && execution ? [task.withOutput(execution)] : []
      })
    },
    async ofTask(taskId, part) {
      const task = tasks.get(taskId)
      return task ? partOf(task.executions, part).map((execution) => task.withOutput(execution)) : []
    },
    ofHost: async (hostId) =>
      (tasks.openOn(hostId)?.all() ?? [])
        .filter((execution) => execution.status === 'RUNNING' || isWaiting(execution))
        .map((execution) => tasks.of(execution).withOutput(execution)),
    waiting: async (hostIds) =>
      hostIds.filter((hostId) => tasks.openOn(hostId)?.waiting.some(isWaiting) === true),
    waitingOn: async (hostId) => tasks.openOn(hostId)?.waiting.filter(isWaiting).length ?? 0,
    counts: async (taskId) => tasks.get(taskId)?.counts ?? null,
    changes: async (taskId, after) => tasks.get(taskId)?.changes(after) ?? { executions: [], cursor: after },
    // Checking each of them costs nothing here.
    changedTasks: async (taskIds, after) => ({ taskIds: [...taskIds], cursor: after }),
    running: async () => tasks.ids(),
    async load() {
      const open = tasks.open()
      const running = open.filter(({ status }) => status === 'RUNNING').length
      return { tasks: tasks.ids().length, running, waiting: open.length - running }
    },
  }
}

function createReceiving(steps: Steps): Pick<Executions, 'append' | 'reached' | 'settle'> {
  const { tasks } = steps
  const { outputs, clock } = steps.deps
  return {
    async append(id, output, json, isOurs) {
      const execution = tasks.execution(id)
      if (!execution) return null
      const { taskId, hostId, position } = execution
      const task = tasks.of(execution)
      return task.live(position).output.append(output, json, isOurs, {
        maxBytes: task.maxOutputBytes,
        async write({ stream, sequence, phase, data }) {
          faultPoint('server.output.before')
          const timestamp = steps.now()
          await outputs.append(taskId, {
            hostId,
            stream,
            sequence,
            timestamp,
            phase: gateOf(phase),
            data,
            json,
          })
          faultPoint('server.output.after')
        },
        isTruncated: () => tasks.execution(id)?.truncated === true,
        async noteTruncated() {
          await steps.change(null, [id], asTruncated)
        },
      })
    },
    async reached(id, phase) {
      const execution = tasks.execution(id)
      if (execution) await steps.change(null, [id], asReached(phase, tasks.of(execution).phases))
    },
    settle: (id, end) =>
      steps.change('settled', [id], (current, output) => settled(end, output, current, clock.now())),
  }
}
