import type { TestFn } from 'ava'
import { ageOf, firstTime, observe } from '../../src/core/clock/agreed-time.ts'
import type { Store } from '../../src/server/storage/ports/store.ts'
import type { DeliveryRecord, WebhookRecord } from '../../src/server/storage/records/webhook.ts'
import type { Outcome } from '../../src/server/webhooks/post.ts'
import { eventIdOf, type QueueParts, workOff } from '../../src/server/webhooks/queue.ts'

const start = Date.parse('2026-03-02T09:00:00.000Z')
const iso = (time: number) => new Date(time).toISOString()

const webhook: WebhookRecord = {
  id: 1,
  name: 'a',
  url: 'https://alerts.example.org/',
  events: ['task.failed'],
  selector: null,
  secret: null,
  format: 'JSON',
  enabled: true,
  owner: 'admin',
  createdAt: iso(start),
  updatedAt: iso(start),
  offline: '',
}

const delivery = (number: number, at = start): DeliveryRecord => ({
  id: `1/${String(number).padStart(6, '0')}`,
  webhookId: 1,
  event: 'task.failed',
  at: iso(at),
  data: { taskId: `t${number}` },
  status: 'WAITING',
  tries: 0,
  nextAt: null,
  lastStatus: null,
  lastError: null,
  endedAt: null,
})

const good: Outcome = { status: 204, error: null }
const bad: Outcome = { status: 503, error: 'the receiver answered 503' }

/** Runs a queue through time that the test sets. */
function queueOn(store: Store, from: () => string | null = () => null) {
  let now = start
  let up = 0
  const reading = () => ({ wall: now, up, bootId: 'a' })
  let time = firstTime(reading(), start)
  let current: WebhookRecord | undefined = webhook
  let answer: Outcome | null = good
  const sent: string[] = []
  const told: [string, number][] = []
  const counts = { delivered: 0, failed: 0, gave_up: 0 }
  const parts: QueueParts = {
    store,
    get from() {
      return from()
    },
    clock: { now: () => now, monotonic: () => up },
    agreed: {
      age() {
        time = observe(time, reading(), true)
        return (from, to) => ageOf(time, from, to)
      },
    },
    async send(_, each) {
      sent.push(eventIdOf(each))
      return answer
    },
    mayGoOn: () => true,
    counted(outcome, count) {
      counts[outcome] += count
    },
    async gaveUp(_, oldest, count) {
      told.push([eventIdOf(oldest), count])
    },
  }
  return {
    sent,
    told,
    counts,
    look: () => workOff(parts, 1, () => current),
    /** `now`: time passes until then; `clock`: only the clock is set. */
    set(next: {
      now?: number
      clock?: number
      webhook?: WebhookRecord | undefined
      answer?: Outcome | null
    }) {
      up += (next.now ?? now) - now
      now = next.clock ?? next.now ?? now
      if ('webhook' in next) current = next.webhook
      if (next.answer !== undefined) answer = next.answer
    },
    put: (records: readonly DeliveryRecord[]) =>
      store.transact((tx) => {
        for (const record of records) tx.put('deliveries', record)
      }),
    all: async () => (await store.query('deliveries')).items,
  }
}

/** Deliveries of a webhook, on every store (contract §16). */
export function webhookQueueContract(
  test: TestFn,
  name: string,
  open: (t: { teardown: (end: () => Promise<void>) => void }) => Promise<Store>,
): void {
  test(`${name} deliveries are sent in the order of their events, each once`, async (t) => {
    const queue = queueOn(await open(t))
    await queue.put([delivery(3), delivery(1), delivery(2)])
    t.deepEqual(await queue.look(), { waiting: 0, wakeAt: null })
    t.deepEqual(queue.sent, ['000001', '000002', '000003'])
    t.deepEqual(await queue.look(), { waiting: 0, wakeAt: null })
    t.is(queue.sent.length, 3)
    for (const each of await queue.all()) t.like(each, { status: 'DELIVERED', tries: 1, lastStatus: 204 })
  })

  test(`${name} while a restore is open, restored deliveries are held and later ones are sent`, async (t) => {
    const restoredAt = start + 25 * 3_600_000
    let from: string | null = iso(restoredAt)
    const queue = queueOn(await open(t), () => from)
    const held = Array.from({ length: 250 }, (_, number) => delivery(number, restoredAt - 1000))
    await queue.put([delivery(250), ...held, delivery(500, restoredAt), delivery(501, restoredAt + 1000)])
    queue.set({ now: restoredAt + 2000 })
    t.deepEqual(await queue.look(), { waiting: 251, wakeAt: null })
    t.deepEqual(queue.sent, ['000500', '000501'])
    t.deepEqual(queue.told, [], 'held deliveries are not given up either')
    from = null
    t.deepEqual(await queue.look(), { waiting: 0, wakeAt: null })
    t.is(queue.sent.length, 252)
    t.deepEqual(queue.told, [['000250', 1]])
  })

  test(`${name} deliveries are tried after 0 s, 5 s, 30 s, 2 min, 10 min, then hourly until 24 h after the event`, async (t) => {
    const queue = queueOn(await open(t))
    await queue.put([delivery(1), delivery(2, start + 1000)])
    queue.set({ answer: bad })
    const pauses: number[] = []
    let at: number | null = start
    while (at !== null && queue.told.length === 0) {
      queue.set({ now: at })
      const { wakeAt } = await queue.look()
      if (queue.told.length === 0) pauses.push((wakeAt ?? 0) - at)
      at = wakeAt
    }
    t.deepEqual(pauses.slice(0, 5), [5_000, 30_000, 120_000, 600_000, 3_600_000])
    t.true(pauses.slice(4).every((pause) => pause === 3_600_000))
    // Minutes and seconds of the first tries, then hours up to the 24th.
    t.is(pauses.length, 4 + 23)
    t.deepEqual(queue.told, [['000001', 1]])
    t.like((await queue.all())[0], { status: 'GAVE_UP', tries: 28, nextAt: null, lastStatus: 503 })
    // The next delivery in the queue had its first try at once.
    t.is(queue.sent.at(-1), '000002')
  })

  test(`${name} expired deliveries are given up without another try, and reported once`, async (t) => {
    const queue = queueOn(await open(t))
    const day = 24 * 3600_000
    await queue.put([delivery(1), delivery(2), delivery(3, start + day)])
    queue.set({ now: start + day })
    t.deepEqual(await queue.look(), { waiting: 0, wakeAt: null })
    t.deepEqual(queue.sent, ['000003'])
    t.deepEqual(queue.told, [['000001', 2]])
    t.deepEqual(queue.counts, { delivered: 1, failed: 0, gave_up: 2 })
  })

  test(`${name} a clock that is days ahead gives nothing up, and failed deliveries are retried once it is right`, async (t) => {
    const queue = queueOn(await open(t))
    const ahead = start + 48 * 3600_000
    await queue.put([delivery(1), delivery(2, ahead)])
    queue.set({ answer: bad })
    await queue.look()
    queue.set({ clock: ahead })
    t.deepEqual(await queue.look(), { waiting: 2, wakeAt: ahead + 30_000 })
    t.deepEqual(queue.told, [])
    queue.set({ clock: start + 10_000, answer: good })
    t.deepEqual(await queue.look(), { waiting: 0, wakeAt: null })
    t.deepEqual(queue.sent, ['000001', '000001', '000001', '000002'])
  })

  test(`${name} past 10,000 waiting deliveries the oldest are given up, and the last 100 ended ones are kept`, async (t) => {
    const queue = queueOn(await open(t))
    for (let from = 0; from < 10_250; from += 2_050)
      await queue.put(Array.from({ length: 2_050 }, (_, at) => delivery(from + at)))
    queue.set({ answer: bad })
    const { waiting, wakeAt } = await queue.look()
    t.is(waiting, 10_000)
    t.is(wakeAt, start + 5_000)
    t.deepEqual(queue.sent, ['000250'])
    t.deepEqual(
      queue.told.map(([, count]) => count),
      [100, 100, 50],
    )
    const left = await queue.all()
    const given = left.filter(({ status }) => status === 'GAVE_UP').map(eventIdOf)
    t.deepEqual([given[0], given.at(-1), given.length], ['000150', '000249', 100])
  })

  test(`${name} a disabled webhook keeps its waiting deliveries, and sends them when it is enabled again`, async (t) => {
    const queue = queueOn(await open(t))
    await queue.put([delivery(1), delivery(2)])
    queue.set({ webhook: { ...webhook, enabled: false } })
    t.deepEqual(await queue.look(), { waiting: 2, wakeAt: null })
    t.deepEqual(queue.sent, [])
    queue.set({ webhook })
    await queue.look()
    t.deepEqual(queue.sent, ['000001', '000002'])
  })

  test(`${name} a try that a stop interrupts does not count`, async (t) => {
    const queue = queueOn(await open(t))
    await queue.put([delivery(1)])
    queue.set({ answer: null })
    t.deepEqual(await queue.look(), { waiting: 1, wakeAt: null })
    t.like((await queue.all())[0], { status: 'WAITING', tries: 0, nextAt: null })
  })

  test(`${name} a delivery that is removed with its webhook while it is sent does not come back`, async (t) => {
    const store = await open(t)
    const queue = queueOn(store)
    await queue.put([delivery(1)])
    queue.set({ answer: bad })
    const looking = queue.look()
    await store.transact((tx) => tx.remove('deliveries', '1/000001'))
    await looking
    t.deepEqual(await queue.all(), [])
  })
}
