import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import fc from 'fast-check'
import { AppendLog, type AppendLogOptions, type LogFault } from '../../src/disk/append-log.ts'
import { type Disk, realDisk } from '../../src/disk/durable.ts'
import { until } from '../helpers/until.ts'

const fault = (code: string) => Object.assign(new Error(`${code}: it was put in`), { code })

/** A real disk whose calls can be made to fail or wait. */
class FaultyDisk implements Disk {
  /** Error code with which a write fails, after `short` bytes. */
  writeFault: string | null = null
  syncFault: string | null = null
  truncateFault: string | null = null
  /** Maximum bytes of one write. */
  short = Number.POSITIVE_INFINITY
  writes = 0
  syncs = 0
  /** An fsync waits for this. */
  held: Promise<void> = Promise.resolve()

  async write(descriptor: number, data: Uint8Array, position: number): Promise<number> {
    this.writes++
    const code = this.writeFault
    const written = await realDisk.write(descriptor, data.subarray(0, this.short), position)
    if (code !== null) throw fault(code)
    return written
  }

  async datasync(descriptor: number): Promise<void> {
    this.syncs++
    await this.held
    if (this.syncFault !== null) throw fault(this.syncFault)
    await realDisk.datasync(descriptor)
  }

  async truncate(descriptor: number, size: number): Promise<void> {
    if (this.truncateFault !== null) throw fault(this.truncateFault)
    await realDisk.truncate(descriptor, size)
  }
}

async function logOn(t: Pick<ExecutionContext, 'teardown'>, options: Partial<AppendLogOptions<string>> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-log-'))
  const path = join(directory, 'log')
  const disk = new FaultyDisk()
  const refused: LogFault[] = []
  const log = new AppendLog<string>(
    { path, handle: await open(path, 'wx+'), size: 0 },
    { name: 'the log', sync: 'batch', disk, refused: (why) => refused.push(why), ...options },
  )
  t.teardown(async () => {
    await log.close()
    await rm(directory, { recursive: true })
  })
  const append = (text: string) => log.append([Buffer.from(text)], text)
  return { log, disk, refused, append, path, directory, text: () => readFile(path, 'utf8') }
}

const full = { whenFull: 'the disk is full', probeMilliseconds: 5 }

function hold(): { held: Promise<void>; release: () => void } {
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  return { held, release }
}

test('appends keep the order of the calls, and appends during an fsync share the next one', async (t) => {
  const { log, disk, append, text } = await logOn(t)
  const { held, release } = hold()
  disk.held = held
  const first = append('a')
  while (disk.syncs === 0) await setImmediate()
  const later = ['bb', 'ccc', 'dddd'].map(append)
  t.is(log.queueLength, 3)
  release()
  t.deepEqual(await Promise.all([first, ...later]), [1, 3, 6, 10])
  t.is(disk.syncs, 2)
  t.is(await text(), 'abbcccdddd')
  t.is(log.size, 10)
})

test('an append without bytes resolves with those before it, and costs no fsync', async (t) => {
  const { disk, append } = await logOn(t)
  t.is(await append(''), 0)
  const order: string[] = []
  await Promise.all(['a', '', 'b'].map((text) => append(text).then(() => order.push(text))))
  t.deepEqual(order, ['a', '', 'b'])
  t.is(disk.syncs, 1)
})

test('the rest of a short write is written', async (t) => {
  const { disk, append, text } = await logOn(t)
  disk.short = 7
  const long = 'x'.repeat(50)
  t.is(await append(long), 50)
  t.is(await text(), long)
  t.is(disk.writes, 8)
})

test('F04 a failed write on a full disk is truncated, and appends are refused until there is room', async (t) => {
  let resume = () => {}
  const resumed = new Promise<void>((resolve) => {
    resume = resolve
  })
  const { log, disk, append, text, refused, directory } = await logOn(t, {
    ...full,
    resumed: () => resume(),
  })
  await append('before')
  disk.short = 3
  disk.writeFault = 'ENOSPC'
  const results = await Promise.allSettled(['a', 'b'].map((one) => append(one.repeat(9))))
  for (const result of results)
    t.like(result, { status: 'rejected', reason: { code: 'unavailable', message: 'the disk is full' } })
  t.deepEqual(refused, ['full'])
  t.is(log.refusal?.retryAfter, 5)
  t.is(await text(), 'before')
  const { writes } = disk
  await t.throwsAsync(append('c'), { message: 'the disk is full' })
  // Only probes write, next to the log.
  await until('two probes have run', () => disk.writes >= writes + 2)
  t.not(log.refusal, null)
  t.is(await text(), 'before')
  disk.writeFault = null
  await resumed
  t.is(log.refusal, null)
  await append('after')
  t.is(await text(), 'beforeafter')
  t.deepEqual(await readdir(directory), ['log'])
})

test('F04 a write is also truncated if the fsync finds the disk full', async (t) => {
  let resume = () => {}
  const resumed = new Promise<void>((resolve) => {
    resume = resolve
  })
  const { disk, append, text, refused } = await logOn(t, { ...full, resumed: () => resume() })
  await append('a')
  disk.syncFault = 'EDQUOT'
  await t.throwsAsync(append('b'), { message: 'the disk is full' })
  t.deepEqual(refused, ['full'])
  t.is(await text(), 'a')
  disk.syncFault = null
  await resumed
  t.is(await append('c'), 2)
  t.is(await text(), 'ac')
})

test('each append tries to write again on a log without `whenFull`', async (t) => {
  for (const code of ['ENOSPC', 'EIO']) {
    const { log, disk, append, text } = await logOn(t)
    disk.writeFault = code
    for (const one of ['a', 'b']) await t.throwsAsync(append(one), { code })
    t.is(disk.writes, 2)
    t.is(log.refusal, null)
    disk.writeFault = null
    await append('c')
    t.is(await text(), 'c')
  }
})

const finalFaults: readonly [string, Partial<FaultyDisk>, Partial<AppendLogOptions<string>>][] = [
  ['a failed fsync', { syncFault: 'EIO' }, {}],
  [
    'an fsync that fails for lack of room, with sync behind',
    { syncFault: 'ENOSPC' },
    { ...full, sync: 'behind' },
  ],
  ['a failed fsync on a log that waits for room', { syncFault: 'EIO' }, full],
  ['a failed write', { writeFault: 'EIO' }, full],
  ['a failed truncation on a full disk', { writeFault: 'ENOSPC', truncateFault: 'EIO' }, full],
]
for (const [what, faults, options] of finalFaults)
  test(`${what} is final and not retried`, async (t) => {
    const { log, disk, append, refused } = await logOn(t, options)
    Object.assign(disk, faults)
    for (const result of await Promise.allSettled(['a', 'b'].map(append)))
      t.like(result, { status: 'rejected', reason: { code: options.whenFull ? 'unavailable' : 'EIO' } })
    Object.assign(disk, { writeFault: null, syncFault: null, truncateFault: null })
    const { writes, syncs } = disk
    await t.throwsAsync(append('c'), { message: /the disk failed while writing the log .*put in/ })
    for (let turn = 0; turn < 10; turn += 1) await setImmediate()
    await t.throwsAsync(append('d'))
    t.deepEqual([disk.writes, disk.syncs], [writes, syncs])
    t.deepEqual(refused, ['failed'])
    t.regex(log.refusal?.message ?? '', /restart the server/)
  })

test('A06 the next append notices that the file was deleted, and all further appends are refused', async (t) => {
  const { disk, append, path, refused } = await logOn(t, { whenDeleted: 'put it back' })
  await append('a')
  await rm(path)
  await t.throwsAsync(append('b'), { message: /log was deleted under the running server/ })
  const { writes } = disk
  const error = await t.throwsAsync(append('c'))
  t.like(error, { code: 'unavailable', hint: 'put it back' })
  t.is(disk.writes, writes)
  t.deepEqual(refused, ['deleted'])
})

test('sync behind: a batch is visible while an earlier one is synced, and fails with its fsync', async (t) => {
  const seen: string[] = []
  const { log, disk, append } = await logOn(t, {
    sync: 'behind',
    written: (batch) => seen.push(...batch.map(({ item }) => item)),
  })
  const { held, release } = hold()
  disk.held = held
  const outcomes = [append('a')]
  while (disk.syncs === 0) await setImmediate()
  for (const one of ['b', 'c']) {
    outcomes.push(append(one))
    while (!seen.includes(one)) await setImmediate()
  }
  t.deepEqual(seen, ['a', 'b', 'c'])
  t.is(log.size, 3)
  disk.syncFault = 'EIO'
  release()
  for (const { status } of await Promise.allSettled(outcomes)) t.is(status, 'rejected')
  t.is(disk.syncs, 1)
})

test('sync behind: a batch written before a full disk still becomes durable', async (t) => {
  const { disk, append, text } = await logOn(t, { sync: 'behind' })
  const { held, release } = hold()
  disk.held = held
  const first = append('a')
  while (disk.syncs === 0) await setImmediate()
  disk.writeFault = 'ENOSPC'
  const second = append('b')
  while (disk.writes < 2) await setImmediate()
  disk.writeFault = null
  release()
  await t.throwsAsync(second, { code: 'ENOSPC' })
  t.is(await first, 1)
  t.is(await append('c'), 2)
  t.is(await text(), 'ac')
})

test('sync never: an append resolves once it is in the file, and sync makes it durable', async (t) => {
  let turns = 0
  const { log, disk, append, text } = await logOn(t, {
    sync: 'never',
    turn: async () => {
      turns++
      return () => turns--
    },
  })
  await append('a')
  t.is(await text(), 'a')
  t.is(disk.syncs, 0)
  await log.sync()
  await log.sync()
  t.is(disk.syncs, 1)
  t.is(turns, 0)
})

test('a batch is truncated if the write of its companion fails', async (t) => {
  let isRefusing = true
  const ends: number[] = []
  const { append, text } = await logOn(t, {
    beside: async (batch) => {
      if (isRefusing) throw fault('ENOSPC')
      ends.push(...batch.map(({ end }) => end))
    },
  })
  await t.throwsAsync(append('a'), { code: 'ENOSPC' })
  t.is(await text(), '')
  isRefusing = false
  await Promise.all(['bb', 'c'].map(append))
  t.is(await text(), 'bbc')
  t.deepEqual(ends, [2, 3])
})

test('exclusive work runs between two batches, and may move the log to another file', async (t) => {
  const { log, append, directory, text } = await logOn(t)
  const before = append('before')
  const next = join(directory, 'next')
  let hadBefore = false
  void before.then(() => {
    hadBefore = true
  })
  await before
  const moved = log.exclusive(async () => {
    t.true(hadBefore)
    t.is(await text(), 'before')
    await log.moveTo({ path: next, handle: await open(next, 'wx'), size: 0 })
  })
  const after = append('after')
  await Promise.all([moved, after])
  t.is(await readFile(next, 'utf8'), 'after')
  t.is(await text(), 'before')
  await t.throwsAsync(
    log.exclusive(() => Promise.reject(new Error('no'))),
    { message: 'no' },
  )
})

test('a closed log has written its pending appends, and accepts no more', async (t) => {
  const { log, append, text } = await logOn(t)
  const writing = append('a')
  await log.close()
  await writing
  t.is(await text(), 'a')
  await t.throwsAsync(append('b'), { message: 'the log is closed' })
  // The teardown closes it again.
  t.pass()
})

test('the file holds exactly the acknowledged appends in order, whichever writes a disk refuses', async (t) => {
  const step = fc.record({
    texts: fc.array(fc.string({ maxLength: 20 }), { maxLength: 4 }),
    fault: fc.option(fc.constantFrom('ENOSPC', 'EDQUOT'), { freq: 2 }),
    short: fc.integer({ min: 1, max: 30 }),
    waits: fc.boolean(),
  })
  const modes = fc.constantFrom('batch' as const, 'behind' as const, 'never' as const)
  await fc.assert(
    fc.asyncProperty(modes, fc.array(step, { maxLength: 12 }), async (sync, steps) => {
      const ends: (() => unknown)[] = []
      const { disk, append, text, log } = await logOn({ teardown: (end) => ends.push(end) }, { sync })
      const kept: string[] = []
      const all: Promise<void>[] = []
      for (const { texts, fault: code, short, waits } of steps) {
        Object.assign(disk, { writeFault: code, short })
        const taken = texts.map((one) =>
          append(one).then(
            () => void kept.push(one),
            () => undefined,
          ),
        )
        all.push(...taken)
        if (waits) await Promise.all(taken)
      }
      await Promise.all(all)
      const found = await text()
      for (const end of ends) await end()
      return found === kept.join('') && log.size === Buffer.byteLength(found)
    }),
    { numRuns: 60 },
  )
  t.pass()
})
