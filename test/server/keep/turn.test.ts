import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { createTurn } from '../../../src/server/keep/turn.ts'

test('a backup waits for what removes old data, and what comes meanwhile is left for later', async (t) => {
  const turn = createTurn()
  const sweep = turn.tryTake('housekeeping')
  let isTaken = false
  const backup = turn.take('a backup').then((end) => {
    isTaken = true
    return end
  })
  await t.throwsAsync(turn.take('a backup'), { code: 'conflict', message: /a backup is under way already/ })
  await setImmediate()
  t.false(isTaken)
  sweep?.()
  const end = await backup
  t.is(turn.tryTake('housekeeping'), null)
  end()
  turn.tryTake('housekeeping')?.()
  ;(await turn.take('a backup'))()
})
