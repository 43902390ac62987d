import { asBegun, asOwnEnd } from '../../executions/transitions.ts'
import type { Executions } from '../../ports/executions.ts'
import type { ExecutionsDependencies } from './dependencies.ts'
import { createEnds } from './ends.ts'
import { createQueries } from './queries.ts'
import { createReceiving } from './receiving.ts'
import { createSending } from './sending.ts'
import { Steps } from './steps.ts'
import { createTurns } from './turns.ts'

/** Executions on the file store: records there, and what follows from those of running tasks in memory. */
export async function openExecutions(deps: ExecutionsDependencies): Promise<Executions> {
  const { store, outputs } = deps
  const steps = new Steps(deps)
  const { tasks, held } = steps
  for (const task of await store.find('tasks', 'status', 'RUNNING')) {
    const executions = await store.find('executions', 'taskId', task.id)
    tasks.add(task, executions, await outputs.progress(task.id))
  }
  return {
    ...createTurns(steps),
    /** Writes the record before speaking to the host over SSH: an execution that a crash cuts is LOST, and not begun again. */
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
