import { buffer } from 'node:stream/consumers'
import type { ExecutionContext, TestFn } from 'ava'
import type { Recordings } from '../../src/server/storage/ports/terminals.ts'

const day = 24 * 3600_000
const failed = (error: unknown) => {
  throw error
}
const bytes = (...texts: string[]) => texts.map((text) => Buffer.from(text))

/** Suite for every implementation of Recordings. */
export function recordingsContract(test: TestFn, open: (t: ExecutionContext) => Promise<Recordings>): void {
  const text = async (recordings: Recordings, id: string, size?: number) =>
    (await buffer(await recordings.read(id, size))).toString()

  test('P46 appended output is read after the header, in order, while the recording grows and afterwards', async (t) => {
    const recordings = await open(t)
    const recording = await recordings.create('s1', Buffer.from('head\n'), failed)
    t.is(await text(recordings, 's1'), 'head\n')
    await recording.append(bytes('a', 'ä', '\n'))
    t.is(await text(recordings, 's1'), 'head\naä\n')
    await recording.append(bytes(...Array.from({ length: 3000 }, (_, at) => `${at},`)))
    await recording.end()
    const all = `head\naä\n${Array.from({ length: 3000 }, (_, at) => `${at},`).join('')}`
    t.is(await text(recordings, 's1'), all)
    t.is(await text(recordings, 's1', 7), Buffer.from(all).subarray(0, 7).toString())
    t.is(await text(recordings, 's1', 0), '')
    const content: Buffer[] = []
    for await (const chunk of recordings.content('s1')) content.push(chunk)
    t.is(Buffer.concat(content).toString(), all)
  })

  test('P46 F20 an abandoned recording is cut where its owner says, and continues from there', async (t) => {
    const recordings = await open(t)
    const recording = await recordings.create('s1', Buffer.from('head\n'), failed)
    await recording.append(bytes('one\n', 'torn'))
    await recording.end()
    const again = await recordings.reopen('s1', 'head\none\n'.length, failed)
    t.is(await text(recordings, 's1'), 'head\none\n')
    await again.append(bytes('two\n'))
    await again.end()
    t.is(await text(recordings, 's1'), 'head\none\ntwo\n')
  })

  test('a session has one recording, and reading a forgotten or unknown one fails with `gone`', async (t) => {
    const recordings = await open(t)
    await (await recordings.create('s1', Buffer.from('1'), failed)).end()
    await t.throwsAsync(recordings.create('s1', Buffer.from('2'), failed))
    t.is(await text(recordings, 's1'), '1')
    await t.throwsAsync(recordings.read('s2'), { code: 'gone' })
    await recordings.forget('s1')
    await recordings.forget('s1')
    await t.throwsAsync(recordings.read('s1'), { code: 'gone' })
    t.deepEqual(await recordings.list(), [])
  })

  test('A04 recordings are listed with the time of their last change; those moved aside are not', async (t) => {
    const recordings = await open(t)
    const before = Date.now()
    for (const id of ['s1', 's2', 's3']) await (await recordings.create(id, Buffer.from(id), failed)).end()
    const listed = await recordings.list()
    t.deepEqual(listed.map(({ id }) => id).toSorted(), ['s1', 's2', 's3'])
    for (const { changedAt } of listed) t.true(Math.abs(changedAt - before) < 60_000)
    t.not(await recordings.moveAside(['s1', 's3'], before), '')
    t.deepEqual(
      (await recordings.list()).map(({ id }) => id),
      ['s2'],
    )
    await recordings.orphans.sweep(1, () => 2 * day)
    t.is(await text(recordings, 's2'), 's2')
  })
}
