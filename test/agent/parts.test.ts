import { appendFileSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { notRun } from '../../src/agent/executions/execution.ts'
import { Journal } from '../../src/agent/executions/journal.ts'
import { incompleteTail } from '../../src/agent/executions/output/spool.ts'
import { agentBackoff, quickDelay } from '../../src/agent/link/backoff.ts'
import { MetricsBuffer } from '../../src/agent/reports/metrics.ts'
import { RsmError } from '../../src/core/errors.ts'
import { retryAfterOf } from '../../src/net/request.ts'
import { temporaryDirectory } from '../helpers/agents/agent.ts'

test('backoff doubles from 5 s to 60 s, and restarts after a success', (t) => {
  const backoff = agentBackoff(() => 0)
  const delays = Array.from({ length: 6 }, () => backoff.next())
  t.deepEqual(delays, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000])
  backoff.reset()
  t.is(backoff.next(), 5_000)
})

test('backoff spreads a fleet with random jitter that only shortens the delay', (t) => {
  const chances = [0, 0.5, 0.999]
  t.deepEqual(
    chances.map((chance) => agentBackoff(() => chance).next()),
    [5_000, 4_375, 3_751],
  )
  for (const chance of chances) {
    const quick = quickDelay(() => chance)
    t.true(quick >= 200 && quick <= 1_000)
  }
})

test('a Retry-After from 5 s to 5 min is honoured with added jitter, and does not double the next delay', (t) => {
  for (const [asked, least, most] of [
    [2, 5_000, 6_250],
    [20, 20_000, 25_000],
    [90, 90_000, 112_500],
    [299, 299_000, 300_000],
    [1e300, 300_000, 300_000],
    [0, 5_000, 6_250],
  ] as const)
    t.deepEqual(
      [0, 1].map((chance) => agentBackoff(() => chance).next(asked)),
      [least, most],
      `${asked} s`,
    )
  const backoff = agentBackoff(() => 0)
  t.deepEqual(
    [backoff.next(), backoff.next(7), backoff.next(7), backoff.next()],
    [5_000, 7_000, 7_000, 10_000],
  )
})

test('a Retry-After that is not a number of seconds is ignored', (t) => {
  const read = (text: string | undefined) => retryAfterOf({ 'retry-after': text })
  t.deepEqual(['0', '12', ' 7 ', '1.5'].map(read), [0, 12, 7, 1.5])
  for (const text of [undefined, '-1', 'NaN', 'Infinity', '1e999', 'soon', 'Wed, 21 Oct 2026 07:28:00 GMT'])
    t.is(read(text), undefined, text)
})

test('a journal with a torn last line opens without it', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  const first = new Journal(path, Date.now)
  first.append({ e: 'received', taskId: 'a' })
  first.close()
  appendFileSync(path, '{"e":"received","task')
  const second = new Journal(path, Date.now)
  t.deepEqual([...second.records.keys()], ['a'])
  t.is(second.storeId, first.storeId)
  second.append({ e: 'received', taskId: 'b' })
  await second.sync()
  second.close()
  const third = new Journal(path, Date.now)
  t.deepEqual([...third.records.keys()], ['a', 'b'])
  third.close()
})

test('A06 a journal damaged in the middle is refused with file, line and remedy, and stays unchanged', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  const journal = new Journal(path, Date.now)
  for (const taskId of ['a', 'b', 'c']) journal.append({ e: 'received', taskId })
  journal.close()
  const lines = readFileSync(path, 'utf8').split('\n')
  lines[2] = '{damaged'
  writeFileSync(path, lines.join('\n'))
  const error = t.throws(() => new Journal(path, Date.now), { instanceOf: RsmError })
  t.is(error?.message, `${path} is damaged: line 3, byte ${Buffer.byteLength(`${lines[0]}\n${lines[1]}\n`)}`)
  t.regex(error?.hint ?? '', /move it aside: mv .* its running executions as LOST$/)
  t.is(readFileSync(path, 'utf8'), lines.join('\n'))
  renameSync(path, `${path}.damaged`)
  new Journal(path, Date.now).close()
})

test('A06 a journal of 0.1.0, without checks, is read as before', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  const lines = ['{"e":"store","storeId":"s","format":1}', '{"e":"received","taskId":"a"}', '{"e":"rec']
  writeFileSync(path, lines.join('\n'))
  const journal = new Journal(path, Date.now)
  journal.close()
  t.is(journal.storeId, 's')
  t.deepEqual([...journal.records.keys()], ['a'])
})

test('an emptied journal gets a new store id, so that the server knows what was lost', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  const first = new Journal(path, Date.now)
  first.close()
  truncateSync(path, 0)
  const second = new Journal(path, Date.now)
  second.close()
  t.not(second.storeId, first.storeId)
})

test('a tombstone is kept for 24 hours, an unacknowledged end forever', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  let now = 1_000_000
  const journal = new Journal(path, () => now)
  for (const taskId of ['old', 'open']) {
    journal.append({ e: 'ended', taskId, complete: notRun(taskId, new Date(0).toISOString(), {}) })
  }
  journal.append({ e: 'acknowledged', taskId: 'old', at: journal.now() })
  now += 24 * 3600 * 1000
  journal.compact()
  t.deepEqual([...journal.records.keys()], ['old', 'open'])
  now += 1
  journal.compact()
  t.deepEqual([...journal.records.keys()], ['open'])
  journal.close()
})

test('F13 a clock set forward by days while the agent is stopped ages no tombstone', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  const day = 24 * 3600 * 1000
  let monotonic = 50_000
  const first = new Journal(path, () => monotonic)
  first.append({ e: 'received', taskId: 'old' })
  first.append({ e: 'acknowledged', taskId: 'old', at: first.now() - 3 * day })
  first.append({ e: 'received', taskId: 'done' })
  first.append({ e: 'acknowledged', taskId: 'done', at: first.now() })
  first.close()
  // Another boot: the monotonic clock restarts. The wall clock is not read.
  monotonic = 3
  const second = new Journal(path, () => monotonic)
  t.deepEqual([...second.records.keys()], ['done'])
  monotonic += day
  second.compact()
  t.deepEqual([...second.records.keys()], ['done'])
  monotonic += 1
  second.compact()
  t.deepEqual([...second.records.keys()], [])
  second.close()
})

const newer = [
  ['{"e":"store","storeId":"s","format":2}', 'format 2 at offset 0'],
  [
    '{"e":"store","storeId":"s","format":1}\n{"e":"paused","taskId":"a"}',
    'a line of kind "paused" at offset 39',
  ],
] as const
for (const [text, what] of newer)
  test(`F18 a journal of a newer version with ${what} is refused, and stays unchanged`, async (t) => {
    const path = join(await temporaryDirectory(t), 'journal')
    writeFileSync(path, `${text}\n`)
    t.throws(() => new Journal(path, Date.now), { message: new RegExp(`newer rsm: it has ${what}$`) })
    t.is(readFileSync(path, 'utf8'), `${text}\n`)
  })

test('the metrics buffer keeps the newest hour', async (t) => {
  const path = join(await temporaryDirectory(t), 'metrics.jsonl')
  const buffer = await MetricsBuffer.open(path)
  const sample = (at: number) => ({
    timestamp: new Date(at * 1000).toISOString(),
    cpu: { usagePercent: 1, loadAvg1m: 0, loadAvg5m: 0, loadAvg15m: 0 },
    memory: { totalMB: 1, usedMB: 0, availableMB: 1, usagePercent: 0 },
    disk: [],
    network: { rxBytesPerSec: 0, txBytesPerSec: 0, connections: 0 },
  })
  for (let at = 0; at < 100; at += 1) await buffer.push(sample(at), 60)
  t.is(buffer.size, 60)
  const reopened = await MetricsBuffer.open(path)
  t.true(reopened.size >= 60 && reopened.size < 70)
  const sent: string[] = []
  await reopened.drain(async ({ timestamp }) => void sent.push(timestamp))
  t.is(sent.at(-1), sample(99).timestamp)
  t.is((await MetricsBuffer.open(path)).size, 0)
})

const tails = [
  [[0x61], 0],
  [[0xc3], 1],
  [[0xc3, 0xa9], 0],
  [[0xe2, 0x82], 2],
  [[0xf0, 0x9f, 0x98], 3],
  [[0xf0, 0x9f, 0x98, 0x80], 0],
  [[0x80, 0x80, 0x80], 0],
  [[0xff], 0],
] as const
for (const [bytes, held] of tails)
  test(`${held} bytes of ${JSON.stringify(bytes)} wait for the rest of a character`, (t) => {
    t.is(incompleteTail(Uint8Array.from(bytes)), held)
  })
