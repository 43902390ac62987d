import type { ExecutionContext, TestFn } from 'ava'
import type { NewEntry, Outputs } from '../../src/server/storage/ports/outputs.ts'

export const entry = (sequence: number, data: string, more: Partial<NewEntry> = {}): NewEntry => ({
  hostId: 1,
  stream: 'stdout',
  sequence,
  timestamp: '2026-01-01T00:00:00.000Z',
  data,
  ...more,
})

export async function text(outputs: Outputs, after = 0): Promise<string> {
  let whole = ''
  for (let next = after; ; ) {
    const read = await outputs.read('task', { after: next, limit: 500 })
    if (read.next === next) return whole
    next = read.next
    whole += read.entries.map(({ data }) => data).join('')
  }
}

/** Suite for every implementation of Outputs. */
export function outputsContract(
  test: TestFn,
  open: (t: ExecutionContext) => Promise<{ outputs: Outputs; reopen: () => Promise<Outputs> }>,
): void {
  test('entries are read in order from any cursor, with whole characters, filtered by host and stream', async (t) => {
    const outputs = (await open(t)).outputs
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

  test("an entry's id is its end offset in a log of lines, so that cursors survive a migration", async (t) => {
    const outputs = (await open(t)).outputs
    const long = 'ä'.repeat(3000)
    const json = Buffer.from(`"${long}"`)
    await Promise.all([
      outputs.append('task', entry(0, 'ä\n')),
      outputs.append('task', entry(1, long, { hostId: 12, stream: 'stderr', json })),
      outputs.append('other', entry(0, '')),
      outputs.append('task', entry(2, '')),
    ])
    const lines = [
      String.raw`{"hostId":1,"stream":"stdout","sequence":0,"timestamp":"2026-01-01T00:00:00.000Z","data":"ä\n","check":"01234567"}`,
      `{"hostId":12,"stream":"stderr","sequence":1,"timestamp":"2026-01-01T00:00:00.000Z","data":"${long}","check":"01234567"}`,
      '{"hostId":1,"stream":"stdout","sequence":2,"timestamp":"2026-01-01T00:00:00.000Z","data":"","check":"01234567"}',
    ]
    const ends = lines.map((_, at) => Buffer.byteLength(`${lines.slice(0, at + 1).join('\n')}\n`))
    const { entries } = await outputs.read('task', { after: 0, limit: 500 })
    t.deepEqual(
      entries.map(({ id }) => id),
      ends,
    )
  })

  test('a log is read backwards in pages, filtered too, and its cursors meet those of reading forwards', async (t) => {
    const outputs = (await open(t)).outputs
    const hostOf = (n: number) => (n % 10) + 1
    await Promise.all(
      Array.from({ length: 5000 }, (_, n) =>
        outputs.append('task', entry(n, `${n}\n`, { hostId: hostOf(n) })),
      ),
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

  test('one backward read examines a bounded part of the log, and returns where to continue', async (t) => {
    const outputs = (await open(t)).outputs
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

  test('the cursor before the last entries counts only entries of the selection', async (t) => {
    const outputs = (await open(t)).outputs
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

  test('appended entries exist after a restart, and new ones follow them', async (t) => {
    const { outputs, reopen } = await open(t)
    for (let n = 0; n < 3; n++) await outputs.append('task', entry(n, `${n};`, { hostId: (n % 2) + 1 }))
    await outputs.append('task', entry(1, 'ä', { hostId: 2, stream: 'stderr' }))
    const before = await outputs.read('task', { after: 0, limit: 500 })
    const again = await reopen()
    t.deepEqual(await again.read('task', { after: 0, limit: 500 }), before)
    t.deepEqual(
      await again.progress('task'),
      new Map([
        [1, { lastSequence: 2, stdoutBytes: 4, stderrBytes: 0, frames: 2 }],
        [2, { lastSequence: 1, stdoutBytes: 2, stderrBytes: 2, frames: 2 }],
      ]),
    )
    await again.append('task', entry(3, 'on'))
    t.is(await text(again, before.next), 'on')
  })

  test('a cursor past the end, or of a task without output, stays as it is', async (t) => {
    const { outputs } = await open(t)
    await outputs.append('task', entry(0, 'x'))
    const { next } = await outputs.read('task', { after: 0, limit: 5 })
    t.deepEqual(await outputs.read('task', { after: next, limit: 5 }), { entries: [], next })
    t.is(await text(outputs, Number.MAX_SAFE_INTEGER), '')
    t.deepEqual(await outputs.read('nosuch', { after: 7, limit: 5 }), { entries: [], next: 7 })
    t.is((await outputs.progress('nosuch')).size, 0)
  })

  test('a finished task is read as before, and `forget` removes all of its output', async (t) => {
    const { outputs } = await open(t)
    for (const task of ['task', 'other']) {
      await outputs.append(task, entry(0, `${task};`))
      await outputs.finish(task)
    }
    t.is(await text(outputs), 'task;')
    await outputs.forget('task')
    t.is(await text(outputs), '')
    t.is((await outputs.read('other', { after: 0, limit: 5 })).entries.length, 1)
  })
}
