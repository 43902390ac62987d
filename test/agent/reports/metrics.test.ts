import { setImmediate as breathe } from 'node:timers/promises'
import test from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import { meter } from '../../../src/agent/reports/metrics.ts'

test('a disk that does not answer is left out of the metrics and not asked again, until it has answered', async (t) => {
  const space = { blocks: 100, bfree: 50, bavail: 50, bsize: 1024 ** 2 }
  const asked: string[] = []
  let answer: ((answered: typeof space) => void) | undefined
  const warned: unknown[] = []
  const measure = meter(
    systemClock,
    (level, _message, fields) => warned.push([level, fields]),
    async (path) => {
      if (path !== '/') throw new Error('it is not of this test')
      asked.push(path)
      if (asked.length > 1) return space
      return new Promise((resolve) => {
        answer = resolve
      })
    },
    50,
  )
  for (let time = 0; time < 2; time += 1) {
    const { disk, memory } = await measure()
    t.deepEqual(disk, [])
    t.true(memory.totalMB > 0)
  }
  t.deepEqual(asked, ['/'])
  t.deepEqual(warned, [['WARN', { mountPoint: '/' }]])
  answer?.(space)
  await breathe()
  const { disk } = await measure()
  t.deepEqual(disk, [{ mountPoint: '/', totalGB: 0.1, usedGB: 0.05, usagePercent: 50 }])
})
