import test from 'ava'
import { createLanes } from '../../../../src/server/tasks/dispatcher/dispatcher.ts'
import { HostLanes } from '../../../../src/server/tasks/dispatcher/host-queues.ts'
import type { EngineParts } from '../../../../src/server/tasks/parts.ts'
import type { Held } from '../../../../src/server/tasks/restore-hold.ts'
import { noted } from '../../../helpers/agents/noted-link.ts'

/** Lanes of hosts of which there are only those in `hosts`, with executions of these statuses. */
function lanesOf(hosts: ReadonlySet<number>, statuses: Record<string, string>) {
  const hostLanes = new HostLanes()
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
  return { hostLanes, lanes: createLanes(parts, hostLanes, {} as Held) }
}

test('what has ended without a word of the agent is forgotten, and no longer said to run', async (t) => {
  const { hostLanes, lanes } = lanesOf(new Set([1]), { t1: 'RUNNING', t2: 'LOST' })
  const lane = hostLanes.of(1)
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
  const { hostLanes, lanes } = lanesOf(new Set([1]), {})
  for (const hostId of [1, 2, 3, 4]) hostLanes.of(hostId)
  hostLanes.of(3).epoch = 7
  hostLanes.of(4).unsent.set('t1/4', noted(4).link.claim)
  await lanes.sweepRunning()
  t.deepEqual([...hostLanes.keys()], [1, 3, 4])
})
