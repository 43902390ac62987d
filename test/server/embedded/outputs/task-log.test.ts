import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { realDisk } from '../../../../src/disk/append-log.ts'
import { createHints } from '../../../../src/server/embedded/hints.ts'
import { createFileOutputs } from '../../../../src/server/embedded/outputs/file-outputs.ts'
import type { NewEntry, Outputs } from '../../../../src/server/seams/outputs.ts'

const entry = (sequence: number, data: string, more: Partial<NewEntry> = {}): NewEntry => ({
  hostId: 1,
  stream: 'stdout',
  sequence,
  timestamp: '2026-01-01T00:00:00.000Z',
  data,
  ...more,
})

async function temporary(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-outputs-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const open = (): Outputs => {
    const outputs = createFileOutputs(directory, createHints(), (error) => t.fail(String(error)))
    t.teardown(() => outputs.close())
    return outputs
  }
  return { open, log: join(directory, 'task', 'output.log'), index: join(directory, 'task', 'output.idx') }
}

async function text(outputs: Outputs, after = 0): Promise<string> {
  let whole = ''
  for (let next = after; ; ) {
    const read = await outputs.read('task', { after: next, limit: 500 })
    if (read.next === next) return whole
    next = read.next
    whole += read.entries.map(({ data }) => data).join('')
  }
}

test('entries come back in order from any cursor, whole characters, filtered by host and stream', async (t) => {
  const outputs = (await temporary(t)).open()
  const data = ['ä', '😀\n', '\u0000\u001b[0m', '', '"quoted"\\', '\u2028']
  await Promise.all(
    data.map((piece, n) =>
      outputs.append('task', entry(n, piece, { hostId: (n % 2) + 1, stream: n % 3 ? 'stdout' : 'stderr' })),
    ),
  )
  const { entries } = await outputs.read('task', { after: 0, limit: 500 })
  t.deepEqual(
    entries.map((one) => one.data),
    data,
  )
  for (const [at, { id }] of entries.entries()) t.is(await text(outputs, id), data.slice(at + 1).join(''))
  const odd = await outputs.read('task', { after: 0, limit: 500, hostId: 2 })
  t.deepEqual(
    odd.entries.map(({ sequence }) => sequence),
    [1, 3, 5],
  )
  const errors = await outputs.read('task', { after: 0, limit: 1, stream: 'stderr' })
  t.deepEqual(
    errors.entries.map(({ sequence }) => sequence),
    [0],
  )
  const progress = await outputs.progress('task')
  t.is(progress.get(1)?.lastSequence, 4)
  t.is(progress.get(2)?.lastSequence, 5)
})

test('a log is read backwards in pages, filtered too, and the places join up with reading forwards', async (t) => {
  const outputs = (await temporary(t)).open()
  const hostOf = (n: number) => (n % 10) + 1
  await Promise.all(
    Array.from({ length: 5000 }, (_, n) => outputs.append('task', entry(n, `${n}\n`, { hostId: hostOf(n) }))),
  )
  for (const query of [{ limit: 300 }, { limit: 7, hostId: 3 }]) {
    const pages: number[][] = []
    for (let before = Number.MAX_SAFE_INTEGER; ; ) {
      const page = await outputs.readBefore('task', { before, ...query })
      pages.unshift(page.entries.map(({ sequence }) => sequence))
      t.true(page.entries.every(({ id }) => id < before && id >= page.previous && id <= page.next))
      const beyond = await outputs.read('task', { after: page.next, limit: 1 })
      t.true(beyond.entries.every(({ id }) => id >= before))
      if (page.previous === 0) break
      before = page.previous
    }
    const all = Array.from({ length: 5000 }, (_, n) => n)
    t.deepEqual(
      pages.flat(),
      all.filter((n) => query.hostId === undefined || hostOf(n) === query.hostId),
    )
    t.true(pages.every((page) => page.length <= query.limit))
  }
  t.deepEqual(await outputs.readBefore('nosuch', { before: 9, limit: 1 }), {
    entries: [],
    next: 0,
    previous: 0,
  })
})

test('one read backwards looks at a bounded part of the log, and says where to go on', async (t) => {
  const outputs = (await temporary(t)).open()
  const count = 70_000
  await outputs.append('task', entry(0, 'first\n', { hostId: 2 }))
  await Promise.all(Array.from({ length: count }, (_, n) => outputs.append('task', entry(n, ''))))
  const query = { hostId: 2, limit: 500 }
  const none = await outputs.readBefore('task', { before: Number.MAX_SAFE_INTEGER, ...query })
  t.is(none.entries.length, 0)
  t.true(none.previous > 0)
  const found = await outputs.readBefore('task', { before: none.previous, ...query })
  t.deepEqual(
    found.entries.map(({ data }) => data),
    ['first\n'],
  )
  t.is(found.previous, 0)
})

test('a cursor in the middle of an entry, past the end or of another log reads no torn entry', async (t) => {
  const outputs = (await temporary(t)).open()
  for (let n = 0; n < 5; n++) await outputs.append('task', entry(n, `${n};`))
  t.is(await text(outputs, 1), '0;1;2;3;4;')
  t.is(await text(outputs, Number.MAX_SAFE_INTEGER), '')
  t.deepEqual(await outputs.read('nosuch', { after: 7, limit: 5 }), { entries: [], next: 7 })
})

test('the cursor before the last entries counts only those of the selection', async (t) => {
  const outputs = (await temporary(t)).open()
  for (let n = 0; n < 10; n++) await outputs.append('task', entry(n, `${n};`, { hostId: (n % 2) + 1 }))
  const tail = async (count: number, hostId?: number) => {
    const after = await outputs.cursorBeforeLast('task', count, { hostId })
    const { entries } = await outputs.read('task', { after, limit: 500, hostId })
    return entries.map(({ data }) => data).join('')
  }
  t.is(await tail(3), '7;8;9;')
  t.is(await tail(2, 1), '6;8;')
  t.is(await tail(0), '')
  t.is(await tail(100), '0;1;2;3;4;5;6;7;8;9;')
  t.is(await tail(100, 2), '1;3;5;7;9;')
  t.is(await tail(1, 77), '')
})

const damages: [string, (log: string, index: string) => Promise<void>, string][] = [
  ['a torn last line', (log) => appendFile(log, '{"hostId":1,"stream":"stdo'), '0;1;2;3;4;'],
  ['zeros at the end', (log) => appendFile(log, Buffer.alloc(4096)), '0;1;2;3;4;'],
  ['a line cut short', async (log) => truncate(log, (await stat(log)).size - 3), '0;1;2;3;'],
  ['no index', (_log, index) => rm(index), '0;1;2;3;4;'],
  ['an empty index', (_log, index) => truncate(index, 0), '0;1;2;3;4;'],
  ['an index that stopped early', (_log, index) => truncate(index, 64), '0;1;2;3;4;'],
  ['an index cut within a record', (_log, index) => truncate(index, 70), '0;1;2;3;4;'],
  ['an index of garbage', (_log, index) => writeFile(index, Buffer.alloc(160, 0xa5)), '0;1;2;3;4;'],
  [
    'an index with garbage at its end',
    (_log, index) => appendFile(index, Buffer.alloc(64, 0x11)),
    '0;1;2;3;4;',
  ],
  [
    'an index whose first record is wrong',
    async (_log, index) => {
      const bytes = await readFile(index)
      await writeFile(index, Buffer.concat([Buffer.alloc(32, 0xff), bytes.subarray(32)]))
    },
    '0;1;2;3;4;',
  ],
]
for (const [what, damage, kept] of damages)
  test(`F03 after ${what} the log opens with all that was whole, and goes on`, async (t) => {
    const { open, log, index } = await temporary(t)
    const before = open()
    for (let n = 0; n < 5; n++) await before.append('task', entry(n, `${n};`))
    await before.close()
    await damage(log, index)
    const outputs = open()
    t.is(await text(outputs), kept)
    const lastSequence = (await outputs.progress('task')).get(1)?.lastSequence ?? -1
    t.is(lastSequence, kept.length / 2 - 1)
    await outputs.append('task', entry(lastSequence + 1, 'next'))
    await outputs.close()
    t.is(await text(open()), `${kept}next`)
  })

test('100,000 entries: any cursor is found quickly, and a restart reads no output', async (t) => {
  const { open } = await temporary(t)
  const outputs = open()
  const count = 100_000
  for (let from = 0; from < count; from += 5000)
    await Promise.all(
      Array.from({ length: 5000 }, (_, n) => outputs.append('task', entry(from + n, `${from + n};`))),
    )
  await outputs.close()
  const again = open()
  const before = performance.now()
  const after = await again.cursorBeforeLast('task', 10, {})
  const { entries } = await again.read('task', { after, limit: 500 })
  t.deepEqual(
    entries.map(({ sequence }) => sequence),
    Array.from({ length: 10 }, (_, n) => count - 10 + n),
  )
  for (const cursor of [0, after >> 1, after >> 2]) {
    const read = await again.read('task', { after: cursor, limit: 2 })
    t.is((read.entries[1]?.sequence ?? 0) - (read.entries[0]?.sequence ?? 0), 1)
    t.true((read.entries[0]?.id ?? 0) > cursor)
  }
  t.true(performance.now() - before < 1000)
  t.is((await again.progress('task')).get(1)?.lastSequence, count - 1)
})

test('a write that fails takes all that waits behind it along: nothing is stored past a gap', async (t) => {
  const outputs = (await temporary(t)).open()
  await outputs.append('task', entry(0, '0;'))
  // A host id that the index can't hold stands for any write that the disk refuses.
  const refused = outputs.append('task', entry(1, '1;', { hostId: 2 ** 60 }))
  const behind = [outputs.append('task', entry(2, '2;')), outputs.append('task', entry(3, '3;'))]
  const outcomes = await Promise.allSettled([refused, ...behind])
  t.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  )
  t.is(await text(outputs), '0;')
  await outputs.append('task', entry(1, '1;'))
  t.is(await text(outputs), '0;1;')
})

test.serial(
  'F03 after an fsync that failed nothing is taken any more, for it would stand behind a gap',
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'rsm-outputs-'))
    t.teardown(() => rm(directory, { recursive: true, force: true }))
    const faults: unknown[] = []
    const outputs = createFileOutputs(directory, createHints(), (error) => faults.push(error))
    t.teardown(() => outputs.close())
    const real = { ...realDisk }
    t.teardown(() => {
      Object.assign(realDisk, real)
    })
    const later: Promise<void>[] = []
    // The second comes while the fsync of the first runs, the third after it has failed, when the disk seems well again.
    realDisk.datasync = async () => {
      Object.assign(realDisk, real)
      later.push(outputs.append('task', entry(1, '1;')))
      await setImmediate()
      throw new Error('the disk is broken')
    }
    await t.throwsAsync(outputs.append('task', entry(0, '0;')), { message: /the disk is broken/ })
    later.push(outputs.append('task', entry(2, '2;')))
    const outcomes = await Promise.allSettled(later)
    t.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    t.is(faults.length, 1)
  },
)

test('reading many logs keeps few files open, and none are left open at the end', async (t) => {
  const { open } = await temporary(t)
  const outputs = open()
  for (let n = 0; n < 100; n++) {
    await outputs.append(`task${n}`, entry(0, 'x'))
    await outputs.finish(`task${n}`)
  }
  for (let n = 0; n < 100; n++)
    t.is((await outputs.read(`task${n}`, { after: 0, limit: 1 })).entries.length, 1)
  await outputs.close()
})
