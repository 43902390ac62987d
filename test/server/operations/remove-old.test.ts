import test from 'ava'
import { Mutex } from '../../../src/core/mutex.ts'
import { createRemoval } from '../../../src/server/operations/housekeeping/retention.ts'

test('during a backup a removal is refused at once, but a dry run still lists what it would remove', async (t) => {
  const none = { tasks: 0, bytes: 0 }
  let swept = 0
  let isOther = false
  const sweep = async () => ++swept
  const plan = async () => ({ byAge: none, bySize: none, kept: none })
  const dataLock = new Mutex()
  const removeOld = createRemoval({
    retention: { days: 30, maxOutputBytes: 0, plan, sweep },
    oldTerminals: { days: 90, plan: async () => ({ sessions: 0, bytes: 0 }), sweep },
    dataLock,
    tryExclusive: async (work) => {
      if (isOther) return false
      await work()
      return true
    },
  })
  const unlock = await dataLock.acquire()
  await t.throwsAsync(removeOld({ dryRun: false }), { code: 'conflict', message: /nothing was removed/ })
  t.false((await removeOld({ dryRun: true })).removed)
  t.is(swept, 0)
  unlock()
  t.true((await removeOld({ dryRun: false })).removed)
  t.is(swept, 2)
  isOther = true
  await t.throwsAsync(removeOld({ dryRun: false }), { code: 'conflict' }, 'another server is removing')
  t.is(swept, 2)
})
