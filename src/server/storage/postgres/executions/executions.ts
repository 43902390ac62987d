import { asBegun, asOwnEnd } from '../../executions/transitions.ts'
import type { Executions } from '../../ports/executions.ts'
import { createCancels } from './cancels.ts'
import type { ExecutionsDependencies } from './dependencies.ts'
import { createEnds } from './ends.ts'
import { createHolds } from './holds.ts'
import { createQueries } from './queries.ts'
import { createReceiving } from './receiving.ts'
import { startRefresh } from './refresh.ts'
import { createSending } from './sending.ts'
import { Steps } from './steps.ts'
import { TaskBounds } from './task-bounds.ts'
import { createTurns } from './turns.ts'

/** Executions in PostgreSQL, as one of its servers has them. */
export async function openPostgresExecutions(deps: ExecutionsDependencies): Promise<Executions> {
  const steps = new Steps(deps)
  const cancels = createCancels(steps)
  const { look, ...holds } = createHolds(steps)
  const { doubtfulOf, close, ...sending } = createSending(steps)
  await look()
  const stop = startRefresh(steps, async () => {
    await look()
    await cancels.sweep()
  })
  return {
    ...createTurns(steps, cancels),
    /** Writes the record before speaking to the host over SSH: an execution that a crash cuts is LOST, and not begun again. */
    begin(by, ids) {
      const condition = { fence: by, nextEpoch: by.epoch, unlessHeld: true }
      return steps.change('sent', ids, asBegun(steps.now()), condition)
    },
    end: (by, id, end) => steps.change('settled', [id], asOwnEnd(end, steps.now()), { fence: by }),
    ...sending,
    ...createReceiving(steps, new TaskBounds(deps.store)),
    ...createEnds(steps),
    ...createQueries(steps, doubtfulOf),
    ...holds,
    async close() {
      await stop()
      await close()
    },
  }
}
