import test from 'ava'
import { Plan, type PlanOptions, type Standing } from '../../../src/core/tasks/plan.ts'

const parallel: PlanOptions = {
  strategy: 'PARALLEL',
  batchSize: null,
  concurrency: null,
  maxFailures: null,
  pauseSeconds: 0,
}

test('a plan of 10,000 hosts takes little time for each result', (t) => {
  const count = 10_000
  const standing = () =>
    Array.from({ length: count }, (): Standing => ({ status: 'PENDING', hadTurn: false }))
  for (const options of [
    { ...parallel, concurrency: 50 },
    { ...parallel, strategy: 'SEQUENTIAL' },
    { ...parallel, strategy: 'ROLLING', batchSize: '1%', concurrency: 7 },
  ] as const) {
    const plan = new Plan(options, standing())
    const begun = performance.now()
    const queue = [...plan.decide(0).start]
    for (let at = 0; at < queue.length; at++) {
      plan.settled(queue[at] ?? 0, 'SUCCESS')
      queue.push(...plan.decide(at).start)
    }
    t.is(queue.length, count)
    t.true(plan.decide(0).done)
    t.true(performance.now() - begun < 1000)
  }
})
