import test from 'ava'
import fc from 'fast-check'
import {
  failureLimit,
  Plan,
  type PlanOptions,
  planBatches,
  type Standing,
} from '../../../src/core/tasks/plan.ts'
import { type FinalStatus, isFailure, isFinal, type ResultStatus } from '../../../src/core/tasks/task.ts'

function optionsOf(options: Partial<PlanOptions>): PlanOptions {
  return {
    strategy: 'PARALLEL',
    batchSize: null,
    concurrency: null,
    maxFailures: null,
    pauseSeconds: 0,
    ...options,
  }
}

const fresh = (count: number): Standing[] =>
  Array.from({ length: count }, () => ({ status: 'PENDING', hadTurn: false }))

const batchCases: readonly (readonly [hosts: number, options: Partial<PlanOptions>, batches: number[]])[] = [
  [0, {}, []],
  [5, {}, [5]],
  [3, { strategy: 'SEQUENTIAL' }, [1, 1, 1]],
  [8, { strategy: 'ROLLING' }, [2, 2, 2, 2]],
  [9, { strategy: 'ROLLING' }, [3, 3, 3]],
  [1, { strategy: 'ROLLING' }, [1]],
  [0, { strategy: 'ROLLING' }, []],
  [5, { strategy: 'ROLLING', batchSize: 2 }, [2, 2, 1]],
  [5, { strategy: 'ROLLING', batchSize: 50 }, [5]],
  [100, { strategy: 'ROLLING', batchSize: '7%' }, [...Array<number>(14).fill(7), 2]],
  [2, { strategy: 'ROLLING', batchSize: '0%' }, [1, 1]],
  [20, { strategy: 'ROLLING', batchSize: [1, '10%', '50%'] }, [1, 2, 10, 7]],
  [6, { strategy: 'ROLLING', batchSize: [3, 1] }, [3, 1, 1, 1]],
]
for (const [hosts, options, batches] of batchCases)
  test(`${hosts} hosts, ${JSON.stringify(options)} gives batches of ${batches.join(', ')}`, (t) => {
    t.deepEqual(planBatches(hosts, optionsOf(options)), batches)
  })

test('the failure limit is a number, a percentage rounded down, or follows from the strategy', (t) => {
  t.is(failureLimit(10, optionsOf({})), Number.POSITIVE_INFINITY)
  t.is(failureLimit(10, optionsOf({ strategy: 'SEQUENTIAL' })), 0)
  t.is(failureLimit(10, optionsOf({ strategy: 'ROLLING' })), 0)
  t.is(failureLimit(19, optionsOf({ maxFailures: '10%' })), 1)
  t.is(failureLimit(10, optionsOf({ strategy: 'ROLLING', maxFailures: 3 })), 3)
})

test('PARALLEL starts all hosts at once', (t) => {
  const plan = new Plan(optionsOf({}), fresh(3))
  t.deepEqual(plan.decide(0), { start: [0, 1, 2], skip: [], pauseUntil: null, done: false })
  t.deepEqual(plan.decide(0).start, [])
  for (const position of [2, 0, 1]) plan.settled(position, 'FAILED')
  t.true(plan.decide(0).done)
})

test('PARALLEL with a concurrency starts no more hosts once more than maxFailures have failed', (t) => {
  const plan = new Plan(optionsOf({ concurrency: 2, maxFailures: 1 }), fresh(6))
  t.deepEqual(plan.decide(0).start, [0, 1])
  plan.settled(0, 'FAILED')
  t.deepEqual(plan.decide(0).start, [2])
  plan.settled(1, 'TIMEOUT')
  t.deepEqual(plan.decide(0), { start: [], skip: [3, 4, 5], pauseUntil: null, done: false })
  plan.settled(2, 'SUCCESS')
  t.deepEqual(plan.decide(0), { start: [], skip: [], pauseUntil: null, done: true })
})

test('SEQUENTIAL runs one host at a time, in order, and stops at the first failure', (t) => {
  const plan = new Plan(optionsOf({ strategy: 'SEQUENTIAL' }), fresh(4))
  t.deepEqual(plan.decide(0).start, [0])
  t.deepEqual(plan.decide(0).start, [])
  plan.settled(0, 'SUCCESS')
  t.deepEqual(plan.decide(0).start, [1])
  plan.settled(1, 'UNREACHABLE')
  t.deepEqual(plan.decide(0), { start: [], skip: [2, 3], pauseUntil: null, done: true })
})

test('ROLLING finishes the batch that exceeds the limit, then stops', (t) => {
  const plan = new Plan(optionsOf({ strategy: 'ROLLING', batchSize: 3, concurrency: 1 }), fresh(6))
  t.deepEqual(plan.decide(0).start, [0])
  plan.settled(0, 'LOST')
  t.deepEqual(plan.decide(0).start, [1])
  plan.settled(1, 'SUCCESS')
  t.deepEqual(plan.decide(0).start, [2])
  plan.settled(2, 'SUCCESS')
  t.deepEqual(plan.decide(0), { start: [], skip: [3, 4, 5], pauseUntil: null, done: true })
})

test('a batch waits for the end of the previous batch and for the pause after it', (t) => {
  const options = optionsOf({ strategy: 'ROLLING', batchSize: 2, pauseSeconds: 10 })
  const plan = new Plan(options, fresh(4))
  t.deepEqual(plan.decide(1000), { start: [0, 1], skip: [], pauseUntil: null, done: false })
  plan.settled(0, 'SUCCESS')
  t.deepEqual(plan.decide(2000), { start: [], skip: [], pauseUntil: null, done: false })
  plan.settled(1, 'SUCCESS')
  t.is(plan.decide(5000).pauseUntil, 15_000)
  t.is(plan.decide(9000).pauseUntil, 15_000)
  t.deepEqual(plan.decide(15_000), { start: [2, 3], skip: [], pauseUntil: null, done: false })
  plan.settled(2, 'SUCCESS')
  plan.settled(3, 'SUCCESS')
  t.deepEqual(plan.decide(16_000), { start: [], skip: [], pauseUntil: null, done: true })
})

test('a pause is not lengthened by a restart or by a clock that is set back', (t) => {
  const options = optionsOf({ strategy: 'SEQUENTIAL', pauseSeconds: 10 })
  const hosts: Standing[] = [{ status: 'SUCCESS', hadTurn: true }, ...fresh(1)]
  t.deepEqual(new Plan(options, hosts, 15_000).decide(15_000).start, [1])
  t.is(new Plan(options, hosts, 15_000).decide(14_000).pauseUntil, 15_000)
  t.is(new Plan(options, hosts, 86_400_000).decide(1000).pauseUntil, 11_000)
})

test('hosts are skipped without a pause', (t) => {
  const plan = new Plan(optionsOf({ strategy: 'SEQUENTIAL', pauseSeconds: 10 }), fresh(2))
  plan.decide(0)
  plan.settled(0, 'FAILED')
  t.deepEqual(plan.decide(0), { start: [], skip: [1], pauseUntil: null, done: true })
})

test('a host that ends before its turn is never started, and counts with its result', (t) => {
  const plan = new Plan(optionsOf({ strategy: 'SEQUENTIAL' }), fresh(4))
  plan.decide(0)
  plan.settled(1, 'CANCELLED')
  plan.settled(0, 'SUCCESS')
  t.deepEqual(plan.decide(0).start, [2])
  plan.settled(3, 'LOST')
  plan.settled(3, 'SUCCESS')
  plan.settled(2, 'SUCCESS')
  t.deepEqual(plan.decide(0), { start: [], skip: [], pauseUntil: null, done: true })
})

const step = fc.oneof(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 0, max: 100 }).map((percent) => `${percent}%`),
)
const arbitraryOptions: fc.Arbitrary<PlanOptions> = fc.record({
  strategy: fc.constantFrom('PARALLEL', 'SEQUENTIAL', 'ROLLING'),
  batchSize: fc.option(fc.oneof(step, fc.array(step, { minLength: 1, maxLength: 4 }))),
  concurrency: fc.option(fc.integer({ min: 1, max: 6 })),
  maxFailures: fc.option(fc.oneof(fc.integer({ min: 0, max: 5 }), step)),
  pauseSeconds: fc.constantFrom(0, 0, 7),
})
const ends: readonly FinalStatus[] = [
  'SUCCESS',
  'SUCCESS',
  'SUCCESS',
  'FAILED',
  'TIMEOUT',
  'UNREACHABLE',
  'LOST',
  'CANCELLED',
]

/** Simulates a whole run, with results drawn from `pick`, and checks every rule at every step. */
function run(count: number, options: PlanOptions, pick: () => number): void {
  const check = (holds: boolean, rule: string): void => {
    if (!holds) throw new Error(rule)
  }
  const hosts: { status: ResultStatus; hadTurn: boolean }[] = fresh(count).map((host) => ({ ...host }))
  let plan = new Plan(options, hosts)
  const limit = failureLimit(count, options)
  const batchOf = plan.batches.flatMap((size, batch) => Array<number>(size).fill(batch))
  check(batchOf.length === count, 'the batches hold every host')
  const concurrency = options.concurrency ?? Number.POSITIVE_INFINITY
  let now = 0
  let last = -1
  let pauseUntil: number | null = null
  let endOfBatch = 0
  for (let steps = 0; steps <= 40 * (count + 1); steps++) {
    const again = new Plan(options, hosts, pauseUntil)
    if (pick() % 3 === 0) plan = again
    const failed = hosts.filter((host) => isFailure(host.status)).length
    const decision = plan.decide(now)
    if (plan !== again && JSON.stringify(again.decide(now)) !== JSON.stringify(decision))
      throw new Error('a new plan decides the same')
    for (const position of decision.start) {
      const host = hosts[position]
      check(host?.status === 'PENDING' && !host.hadTurn, 'a host starts once, and only while it is PENDING')
      check(position > last, 'hosts start in order')
      const batch = batchOf[position] ?? 0
      const begins = last < 0 || batch > (batchOf[last] ?? 0)
      if (options.strategy === 'PARALLEL' || begins) check(failed <= limit, 'nothing starts past maxFailures')
      if (begins) {
        check(
          hosts.every((other, at) => (batchOf[at] ?? 0) >= batch || isFinal(other.status)),
          'the previous batch has ended',
        )
        if (last >= 0) check(now >= endOfBatch + options.pauseSeconds * 1000, 'the pause is kept')
      }
      last = position
      if (host) host.hadTurn = true
    }
    for (const position of decision.skip) {
      const host = hosts[position]
      check(
        host?.status === 'PENDING' && !host.hadTurn && failed > limit,
        'only hosts that never started are skipped',
      )
      if (host) host.status = 'SKIPPED'
    }
    pauseUntil = decision.pauseUntil
    check((pauseUntil ?? 0) <= endOfBatch + options.pauseSeconds * 1000, 'no pause is lengthened')
    const inFlight = hosts.flatMap((host, at) => (host.hadTurn && !isFinal(host.status) ? [at] : []))
    check(inFlight.length <= concurrency, 'never more at once than concurrency')
    check(options.strategy !== 'SEQUENTIAL' || inFlight.length <= 1, 'SEQUENTIAL is one at a time')
    check(
      decision.done === hosts.every((host) => isFinal(host.status)),
      'a plan is done when every host has ended',
    )
    if (decision.done) return
    check(inFlight.length > 0 || pauseUntil !== null, 'a plan never stalls')
    if (pauseUntil === null || (inFlight.length > 0 && pick() % 2 === 0)) {
      const position = inFlight[pick() % inFlight.length] ?? 0
      const status = ends[pick() % ends.length] ?? 'SUCCESS'
      const host = hosts[position]
      if (host) host.status = status
      plan.settled(position, status)
      now += 1 + (pick() % 500)
      endOfBatch = now
    } else now = Math.min(pauseUntil, now + 1 + (pick() % 10_000))
    const waiting = hosts.findIndex((host) => !host.hadTurn && !isFinal(host.status))
    if (waiting >= 0 && pick() % 11 === 0) {
      const status = pick() % 2 ? 'CANCELLED' : 'LOST'
      const host = hosts[waiting]
      if (host) host.status = status
      plan.settled(waiting, status)
    }
  }
  throw new Error('a plan always ends')
}

test('every run follows the rules: one start, order, batches, concurrency, maxFailures, pauses, an end', (t) => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 40 }),
      arbitraryOptions,
      fc.infiniteStream(fc.nat({ max: 10_000 })),
      (count, options, stream) => {
        run(count, options, () => Number(stream.next().value))
      },
    ),
    { numRuns: 2000 },
  )
  t.pass()
})

test('batches contain every host once and are never empty; percentages are rounded up, and the last entry repeats', (t) => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 500 }),
      fc.array(step, { minLength: 1, maxLength: 4 }),
      (count, batchSize) => {
        const batches = planBatches(count, optionsOf({ strategy: 'ROLLING', batchSize }))
        const total = batches.reduce((sum, size) => sum + size, 0)
        if (total !== count) throw new Error(`${total} of ${count} hosts`)
        for (const [at, size] of batches.entries()) {
          const entry = batchSize[Math.min(at, batchSize.length - 1)] ?? 1
          const share = typeof entry === 'number' ? entry : (count * Number.parseInt(entry, 10)) / 100
          const isLast = at === batches.length - 1
          if (size < 1) throw new Error('an empty batch')
          if (isLast ? size > Math.max(1, Math.ceil(share)) : size < share || size >= Math.max(share, 0) + 1)
            if (!(size === 1 && share < 1)) throw new Error(`batch ${at} of ${size} hosts for ${entry}`)
        }
      },
    ),
    { numRuns: 3000 },
  )
  t.pass()
})

test('a new plan after the clock is set back or forward starts no host again and keeps the pause', (t) => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 30 }),
      arbitraryOptions,
      fc.array(fc.integer({ min: -100_000, max: 100_000 }), { minLength: 40, maxLength: 40 }),
      (count, options, steps) => {
        const hosts = fresh(count).map((host) => ({ ...host }))
        const starts = new Map<number, number>()
        let now = 1_000_000
        let pauseUntil: number | null = null
        for (const by of steps) {
          const plan: Plan = new Plan(options, hosts, pauseUntil)
          const decision = plan.decide(now)
          pauseUntil = decision.pauseUntil
          if (pauseUntil !== null && pauseUntil > now + options.pauseSeconds * 1000)
            throw new Error('a pause is longer than pauseSeconds')
          for (const position of decision.start) {
            starts.set(position, (starts.get(position) ?? 0) + 1)
            const host = hosts[position]
            if (host) host.hadTurn = true
          }
          for (const position of decision.skip) {
            const host = hosts[position]
            if (host?.hadTurn) throw new Error('skipped after its turn')
            if (host) host.status = 'SKIPPED'
          }
          const ending = hosts.find(({ status, hadTurn }) => hadTurn && !isFinal(status))
          if (ending) ending.status = ends[Math.abs(by) % ends.length] ?? 'SUCCESS'
          now = Math.max(0, now + by)
        }
        if ([...starts.values()].some((times) => times > 1)) throw new Error('a host started twice')
      },
    ),
    { numRuns: 2000 },
  )
  t.pass()
})
