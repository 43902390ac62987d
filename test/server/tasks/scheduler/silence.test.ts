import test from 'ava'
import { RsmError } from '../../../../src/core/errors.ts'
import type { EngineParts } from '../../../../src/server/tasks/parts.ts'
import { createUnreachable } from '../../../../src/server/tasks/scheduler/silence.ts'
import type { TaskRunner } from '../../../../src/server/tasks/scheduler/task-runner.ts'

test('time without a lookup of links does not count against hosts with waiting executions', async (t) => {
  let now = 0
  const state = { isAway: false, given: [] as string[] }
  const one = { id: 'a/1', taskId: 'a', hostId: 1, hostname: 'web1', status: 'PENDING' }
  const task = {
    awaySince: new Map<string, number>(),
    graceUntil: 0,
    queueSeconds: null,
    waiting: () => [one],
  }
  const parts = {
    executions: {
      held: new Set(),
      transition: async ({ which }: { which: string[] }) => {
        state.given.push(...which)
        return []
      },
    },
    links: {
      async holders() {
        if (state.isAway) throw new RsmError('unavailable', 'the store cannot be reached just now')
        return new Map()
      },
    },
    presence: {
      views: async () => [{ status: 'ONLINE', says: {}, lastHeartbeatAt: '2026-03-02T09:30:00.000Z' }],
    },
    store: { readOnlyReason: null },
    clock: { now: () => now, monotonic: () => now },
    isStopping: () => false,
    ended() {},
  }
  const owned = new Map([['a', task as unknown as TaskRunner]])
  const unreachable = createUnreachable(parts as unknown as EngineParts, owned, 0)
  /** Enough sweeps for one lookup of links. */
  const sweep = async () => {
    for (let n = 0; n < 4; n++) await unreachable.sweep().catch(() => undefined)
  }
  await sweep()
  now += 60_000
  state.isAway = true
  await sweep()
  now += 180_000
  await sweep()
  state.isAway = false
  await sweep()
  now += 119_000
  await sweep()
  t.deepEqual(state.given, [])
  now += 1_000
  await sweep()
  t.deepEqual(new Set(state.given), new Set(['a/1']))
})
