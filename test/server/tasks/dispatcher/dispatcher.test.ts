import test from 'ava'
import { createDispatcher } from '../../../../src/server/tasks/dispatcher/dispatcher.ts'
import { HostStates } from '../../../../src/server/tasks/dispatcher/host-states.ts'
import type { EngineParts } from '../../../../src/server/tasks/parts.ts'
import type { RestoreHold } from '../../../../src/server/tasks/restore-hold.ts'
import { noted } from '../../../helpers/agents/noted-link.ts'

/** A dispatcher that knows only the hosts in `hosts`, with executions of these statuses. */
function dispatcherOf(hosts: ReadonlySet<number>, statuses: Record<string, string>) {
  const hostQueues = new HostStates()
  const parts = {
    executions: {
      find: async (taskId: string) => statuses[taskId] && { execution: { status: statuses[taskId] } },
    },
    hints: { subscribe: () => () => undefined },
    store: {
      getMany: async (_: 'hosts', ids: number[]) => ids.map((id) => (hosts.has(id) ? { id } : undefined)),
    },
    clock: { monotonic: () => 5 },
  } as unknown as EngineParts
  return { hostQueues, dispatcher: createDispatcher(parts, hostQueues, {} as RestoreHold) }
}

test('an execution that ended without its agent is forgotten and no longer listed as running', async (t) => {
  const { hostQueues, dispatcher } = dispatcherOf(new Set([1]), { t1: 'RUNNING', t2: 'LOST' })
  const queue = hostQueues.of(1)
  const { link } = noted(1)
  Object.assign(queue, { link, epoch: link.claim.epoch })
  for (const taskId of ['t1', 't2', 't3']) {
    queue.named.add(taskId)
    queue.heard.set(taskId, 0)
    queue.cancelled.add(taskId)
  }
  await dispatcher.sweepRunning()
  t.deepEqual([...queue.named], ['t1'])
  t.deepEqual([...queue.cancelled], ['t1'])
  t.deepEqual([...queue.heard], [['t1', 5]])
})

test('a deleted host is forgotten once its link is gone, and other hosts are kept', async (t) => {
  const { hostQueues, dispatcher } = dispatcherOf(new Set([1]), {})
  for (const hostId of [1, 2, 3, 4]) hostQueues.of(hostId)
  hostQueues.of(3).epoch = 7
  hostQueues.of(4).unsent.set('t1/4', noted(4).link.claim)
  await dispatcher.sweepRunning()
  t.deepEqual([...hostQueues.keys()], [1, 3, 4])
})
