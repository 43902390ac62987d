import test from 'ava'
import { createDispatcher } from '../../../../src/server/tasks/dispatcher/dispatcher.ts'
import { HostQueues } from '../../../../src/server/tasks/dispatcher/host-queues.ts'
import type { EngineParts } from '../../../../src/server/tasks/parts.ts'
import type { RestoreHold } from '../../../../src/server/tasks/restore-hold.ts'
import { noted } from '../../../helpers/agents/noted-link.ts'

/** Dispatcher of hosts of which there are only those in `hosts`, with executions of these statuses. */
function lanesOf(hosts: ReadonlySet<number>, statuses: Record<string, string>) {
  const hostQueues = new HostQueues()
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
  return { hostQueues, lanes: createDispatcher(parts, hostQueues, {} as RestoreHold) }
}

test('what has ended without a word of the agent is forgotten, and no longer said to run', async (t) => {
  const { hostQueues, lanes } = lanesOf(new Set([1]), { t1: 'RUNNING', t2: 'LOST' })
  const lane = hostQueues.of(1)
  const { link } = noted(1)
  Object.assign(lane, { link, epoch: link.claim.epoch })
  for (const taskId of ['t1', 't2', 't3']) {
    lane.named.add(taskId)
    lane.heard.set(taskId, 0)
    lane.cancelled.add(taskId)
  }
  await lanes.sweepRunning()
  t.deepEqual([...lane.named], ['t1'])
  t.deepEqual([...lane.cancelled], ['t1'])
  t.deepEqual([...lane.heard], [['t1', 5]])
})

test('a host that was deleted is forgotten once its link is gone; what is known of another one stays', async (t) => {
  const { hostQueues, lanes } = lanesOf(new Set([1]), {})
  for (const hostId of [1, 2, 3, 4]) hostQueues.of(hostId)
  hostQueues.of(3).epoch = 7
  hostQueues.of(4).unsent.set('t1/4', noted(4).link.claim)
  await lanes.sweepRunning()
  t.deepEqual([...hostQueues.keys()], [1, 3, 4])
})
