import { once } from 'node:events'
import { watch } from 'node:fs'
import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Metrics } from '../../../../src/core/hosts/host.ts'
import { createLog, type Log } from '../../../../src/disk/log.ts'
import { createFileHistory, type FileHistoryOptions } from '../../../../src/server/storage/files/history.ts'
import type { History } from '../../../../src/server/storage/ports/presence.ts'
import { historyContract } from '../../../contracts/history.ts'
import { believed } from '../../../helpers/faults/believed-clock.ts'
import { mountSmallDisk } from '../../../helpers/faults/small-disk.ts'
import { metrics } from '../../../helpers/metrics/metrics.ts'

const start = Date.parse('2026-03-10T12:00:00.000Z')
const hour = 3600_000
const day = 24 * hour
const iso = (at: number) => new Date(at).toISOString()

async function directoryFor(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-history-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** A history whose clock is stopped at `start`; it writes only when it is closed. */
function openHistory(directory: string, options: Partial<FileHistoryOptions> = {}) {
  const clock = { time: start, now: () => clock.time, monotonic: () => clock.time }
  const warnings: string[] = []
  const warn = (_fields: unknown, message: string) => warnings.push(message)
  const log = { warn } as unknown as Log
  return {
    clock,
    warnings,
    history: createFileHistory({ directory, clock, log, flushDelay: hour, ...options }),
  }
}

async function readAll(history: History, hostId: number, from = start - 30 * day, to = start + 30 * day) {
  const samples: Metrics[] = []
  for await (const sample of history.read(hostId, from, to)) samples.push(sample)
  return samples.sort((one, other) => one.timestamp.localeCompare(other.timestamp))
}
const timesOf = (samples: readonly Metrics[]) => samples.map(({ timestamp }) => Date.parse(timestamp) - start)

historyContract(test, async (t, clock) => {
  const directory = await directoryFor(t)
  const open = () => createFileHistory({ directory, clock, log: createLog('ERROR'), flushDelay: hour })
  let history = open()
  const reopen = async () => {
    await history.close()
    history = open()
    return history
  }
  return { history, reopen }
})

test('appended samples are read back, before and after they are written, and by a reopened history', async (t) => {
  const directory = await directoryFor(t)
  const { history } = openHistory(directory)
  const disks = { '/': 40, '/a "b"\n\u2028c': 91.3 }
  const samples = [-2 * day, -60_000, 0].map((ago) => metrics(iso(start + ago), { disks }))
  for (const sample of samples) history.append(7, sample)
  history.append(8, metrics(iso(start)))
  t.deepEqual(await readAll(history, 7), samples)
  t.deepEqual(await readdir(directory), [])
  await history.close()
  t.deepEqual(await readAll(history, 7), samples)
  const { history: next } = openHistory(directory)
  t.deepEqual(await readAll(next, 7), samples)
  t.deepEqual(await readdir(join(directory, '7')), ['2026-03-08.jsonl', '2026-03-10.jsonl'])
  t.is((await stat(join(directory, '7', '2026-03-08.jsonl'))).mode & 0o777, 0o600)
})

test('torn and foreign lines are skipped, and samples appended after a torn line are read', async (t) => {
  const directory = await directoryFor(t)
  const { history } = openHistory(directory)
  history.append(1, metrics(iso(start)))
  history.append(1, metrics(iso(start + 1)))
  await history.close()
  const path = join(directory, '1', '2026-03-10.jsonl')
  const whole = await readFile(path)
  await writeFile(path, whole.subarray(0, whole.length - 20))
  await appendFile(path, '\n[1,2]\n{"a":1}\n\u0000\u0000\n[1,2,3,4,5,6,7,8,9,10,11,null,[]]\n[[[')
  const { history: next } = openHistory(directory)
  next.append(1, metrics(iso(start + 2)))
  await next.close()
  t.deepEqual(timesOf(await readAll(next, 1)), [0, 2])
})

test('a sweep removes days that ended more than 7 days ago, and hosts without other days', async (t) => {
  const directory = await directoryFor(t)
  const { history, clock } = openHistory(directory)
  history.append(1, metrics(iso(start)))
  history.append(2, metrics(iso(start)))
  clock.time = start + 3 * day
  history.append(2, metrics(iso(clock.time)))
  await history.close()
  const endOfFirst = Date.parse('2026-03-11T00:00:00.000Z')
  await history.sweep(believed(() => endOfFirst + 7 * day - 1).age())
  t.deepEqual((await readdir(directory)).sort(), ['1', '2'])
  await history.sweep(believed(() => endOfFirst + 7 * day).age())
  t.deepEqual(await readdir(directory), ['2'])
  t.deepEqual(timesOf(await readAll(history, 2)), [3 * day])
})

test('a sweep without any history, or beside foreign files, has no effect', async (t) => {
  const directory = await directoryFor(t)
  await openHistory(join(directory, 'none')).history.sweep(believed(() => start).age())
  await writeFile(join(directory, 'notes.txt'), 'mine')
  await openHistory(directory).history.sweep(believed(() => start).age())
  t.deepEqual(await readdir(directory), ['notes.txt'])
})

test('a host that is forgotten while its samples are written leaves no files', async (t) => {
  const directory = await directoryFor(t)
  const { history } = openHistory(directory, { flushDelay: 0 })
  for (let n = 0; n < 200; n++) history.append(n % 2, metrics(iso(start - n)))
  await history.close()
  for (let n = 0; n < 200; n++) history.append(n % 2, metrics(iso(start - n)))
  const closed = history.close()
  await history.forget(1)
  await closed
  t.deepEqual(await readAll(history, 1), [])
  t.is((await readAll(history, 0)).length, 200)
  t.deepEqual(await readdir(directory), ['0'])
})

test('on a disk that rejects writes, samples wait up to a bound and the oldest are dropped, with one warning each', async (t) => {
  const parent = await directoryFor(t)
  const directory = join(parent, 'metrics')
  await writeFile(directory, 'not a directory: nothing can be written')
  const line = 150
  const { history, warnings } = openHistory(directory, { mostWaiting: 10 * line })
  for (let n = 0; n < 100; n++) history.append(1, metrics(iso(start - 100 + n)))
  await history.close()
  await history.close()
  t.is(warnings.filter((warning) => warning.includes('cannot write')).length, 1)
  t.is(warnings.filter((warning) => warning.includes('for too long')).length, 1)
  await rm(directory)
  await history.close()
  const kept = timesOf(await readAll(history, 1))
  t.is(kept.at(-1), -1)
  t.true(kept.length >= 5 && kept.length <= 20)
  t.deepEqual(
    kept,
    kept.map((_, place) => place - kept.length),
  )
})

const mounted = mountSmallDisk(64 * 1024)
// A small disk to fill requires permission to mount: root, outside a plain container.
const whereMountable = mounted === null ? test.skip : test

whereMountable(
  'F04 samples that a full disk refuses wait, stay readable, and are written once there is room',
  async (t) => {
    const directory = String(mounted?.directory)
    t.teardown(() => mounted?.unmount())
    const { history, warnings } = openHistory(directory)
    const ballast = join(directory, 'ballast')
    await writeFile(ballast, Buffer.alloc(44 * 1024))
    const times = Array.from({ length: 300 }, (_, n) => n)
    for (const n of times) history.append(1, metrics(iso(start + n)))
    await history.close()
    await history.close()
    t.is(warnings.filter((warning) => warning.includes('cannot write')).length, 1)
    const { size } = await stat(join(directory, '1', '2026-03-10.jsonl'))
    t.true(size > 0 && size < 25_000, 'part was written')
    t.deepEqual([...new Set(timesOf(await readAll(history, 1)))], times)
    await rm(ballast)
    await history.close()
    t.deepEqual([...new Set(timesOf(await readAll(openHistory(directory).history, 1)))], times)
  },
)

test('appended samples are written automatically after a short delay', async (t) => {
  const directory = await directoryFor(t)
  const { history } = openHistory(directory, { flushDelay: 1 })
  const watcher = watch(directory)
  t.teardown(() => watcher.close())
  const written = once(watcher, 'change')
  history.append(5, metrics(iso(start)))
  await written
  t.deepEqual(await readdir(directory), ['5'])
  await history.close()
})
