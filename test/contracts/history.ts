import type { ExecutionContext, TestFn } from 'ava'
import type { Metrics } from '../../src/core/hosts/host.ts'
import type { Clock } from '../../src/disk/clock.ts'
import type { History } from '../../src/server/storage/ports/presence.ts'
import { believed } from '../helpers/faults/believed-clock.ts'
import { metrics } from '../helpers/metrics/metrics.ts'

const start = Date.parse('2026-03-10T12:00:00.000Z')
const hour = 3600_000
const day = 24 * hour
const iso = (at: number) => new Date(at).toISOString()

async function readAll(history: History, hostId: number, from = start - 30 * day, to = start + 30 * day) {
  const samples: Metrics[] = []
  for await (const sample of history.read(hostId, from, to)) samples.push(sample)
  return samples.sort((one, other) => one.timestamp.localeCompare(other.timestamp))
}
const timesOf = (samples: readonly Metrics[]) => samples.map(({ timestamp }) => Date.parse(timestamp) - start)

/** Suite for every implementation of History, with a stopped clock; `reopen` closes it and opens what it kept. */
export function historyContract(
  test: TestFn,
  open: (t: ExecutionContext, clock: Clock) => Promise<{ history: History; reopen: () => Promise<History> }>,
): void {
  async function started(t: ExecutionContext) {
    const clock = { time: start, now: () => clock.time, monotonic: () => clock.time }
    return { clock, ...(await open(t, clock)) }
  }

  test('the samples of a host are read back, at once and after reopening', async (t) => {
    const { history, reopen } = await started(t)
    const disks = { '/': 40, '/a "b"\n\u2028c': 91.3 }
    const samples = [-2 * day, -60_000, 0].map((ago) => metrics(iso(start + ago), { disks }))
    for (const sample of samples) history.append(7, sample)
    history.append(8, metrics(iso(start)))
    t.deepEqual(await readAll(history, 7), samples)
    t.deepEqual(await readAll(await reopen(), 7), samples)
  })

  test('a read returns only the samples of the range, both ends included', async (t) => {
    const { history, reopen } = await started(t)
    for (const ago of [-3 * hour, -2 * hour, -hour, 0]) history.append(1, metrics(iso(start + ago)))
    for (const opened of [history, await reopen()])
      t.deepEqual(timesOf(await readAll(opened, 1, start - 2 * hour, start - hour)), [-2 * hour, -hour])
  })

  test('reports that arrive late are stored under their own time, also beside samples of the same day', async (t) => {
    const { history, reopen } = await started(t)
    history.append(1, metrics(iso(start)))
    const later = await reopen()
    for (const ago of [-40, -30, -20, -10]) later.append(1, metrics(iso(start + ago * 60_000)))
    t.deepEqual(timesOf(await readAll(await reopen(), 1)), [-2_400_000, -1_800_000, -1_200_000, -600_000, 0])
  })

  for (const [what, told, kept] of [
    ['59 s ahead', 59_000, 59_000],
    ['61 s ahead', 61_000, 0],
    ['6 days old', -6 * day, -6 * day],
    ['8 days old', -8 * day, 0],
  ] as const)
    test(`a timestamp that is ${what} is ${told === kept ? 'taken as it is' : "replaced by the server's time"}`, async (t) => {
      const { history } = await started(t)
      history.append(1, metrics(iso(start + told)))
      t.deepEqual(timesOf(await readAll(history, 1)), [kept])
    })

  test('a sweep removes days that ended more than 7 days ago, and no others', async (t) => {
    const { history, clock, reopen } = await started(t)
    for (const hostId of [1, 2]) history.append(hostId, metrics(iso(start)))
    clock.time = start + 3 * day
    history.append(2, metrics(iso(clock.time)))
    const opened = await reopen()
    const endOfFirst = Date.parse('2026-03-11T00:00:00.000Z')
    await opened.sweep(believed(() => endOfFirst + 7 * day - 1).age())
    t.deepEqual(timesOf(await readAll(opened, 1)), [0])
    await opened.sweep(believed(() => endOfFirst + 7 * day).age())
    t.deepEqual(await readAll(opened, 1), [])
    t.deepEqual(timesOf(await readAll(opened, 2)), [3 * day])
  })

  test('`forget` removes all samples of a host, written or not', async (t) => {
    const { history, reopen } = await started(t)
    for (const hostId of [1, 2]) history.append(hostId, metrics(iso(start)))
    const opened = await reopen()
    for (const hostId of [1, 2]) opened.append(hostId, metrics(iso(start + 1)))
    await opened.forget(1)
    for (const last of [opened, await reopen()]) {
      t.deepEqual(await readAll(last, 1), [])
      t.deepEqual(timesOf(await readAll(last, 2)), [0, 1])
    }
  })
}
