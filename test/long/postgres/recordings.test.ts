import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import type { Recordings } from '../../../src/server/storage/ports/terminals.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { createRecordings } from '../../../src/server/storage/postgres/recordings.ts'
import { recordingsContract } from '../../contracts/recordings.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()
const failed = (error: unknown) => {
  throw error
}
const bytes = (...texts: string[]) => texts.map((text) => Buffer.from(text))
const all = async (recordings: Recordings, id: string, size?: number) =>
  (await buffer(await recordings.read(id, size))).toString()

async function open(t: ExecutionContext, url?: string) {
  const database = openDatabase(t, url ?? (await (await postgres).database()))
  return { database, recordings: createRecordings(database) }
}

const chunksOf = async (database: Database) =>
  (await database.ask<{ start: number }>('api', 'select start from rsm.recording_chunks order by start')).map(
    ({ start }) => start,
  )

recordingsContract(test, async (t) => (await open(t)).recordings)

test('P46 F20 a server adds nothing to a recording that another server continues', async (t) => {
  const url = await (await postgres).database()
  const [a, b] = [(await open(t, url)).recordings, (await open(t, url)).recordings]
  const former = await a.create('s1', Buffer.from('head\n'), failed)
  await former.append(bytes('one\n'))
  const present = await b.reopen('s1', 9, failed)
  await t.throwsAsync(former.append(bytes('former\n')), {
    message: /another server continues this recording/,
  })
  await present.append(bytes('two\n'))
  await t.throwsAsync(former.append(bytes('former\n')))
  await former.end()
  await present.end()
  t.is(await all(a, 's1'), 'head\none\ntwo\n')
})

test('P46 an append that races with a reopen leaves nothing after the bytes that the reopen kept', async (t) => {
  const url = await (await postgres).database()
  const { database, recordings: a } = await open(t, url)
  const { recordings: b } = await open(t, url)
  for (let round = 0; round < 20; round++) {
    const id = `s${round}`
    const former = await a.create(id, Buffer.from('head\n'), failed)
    await former.append(bytes('one\n'))
    const appended = former.append(bytes('former\n')).catch(() => undefined)
    for (let n = 0; n < round % 5; n++) await database.ask('api', 'select')
    const present = await b.reopen(id, 9, failed)
    await present.append(bytes('two\n'))
    await appended
    t.is(await all(b, id), 'head\none\ntwo\n')
  }
})

test('many recordings grow at once, their chunks are joined, and each recording is complete', async (t) => {
  const { database, recordings } = await open(t)
  const line = `${'x'.repeat(99)}\n`
  const ids = Array.from({ length: 30 }, (_, n) => `s${n}`)
  await Promise.all(
    ids.map(async (id) => {
      const recording = await recordings.create(id, Buffer.from(`${id}\n`), failed)
      for (let n = 0; n < 30; n++)
        await recording.append(Array.from({ length: 100 }, () => Buffer.from(line)))
      await recording.end()
    }),
  )
  const [{ count } = { count: 0 }] = await database.ask<{ count: number }>(
    'api',
    'select count(*) from rsm.recording_chunks',
  )
  t.is(count, 30 * 2)
  for (const id of ids) t.is(await all(recordings, id), `${id}\n${line.repeat(3000)}`)
})

test('a recording is cut at any byte, in joined chunks or others', async (t) => {
  const { recordings } = await open(t)
  const line = `${'x'.repeat(99)}\n`
  const whole = `head\n${line.repeat(3000)}`
  for (const size of [1, 5, 105, 200_000, 270_005, 270_006, 300_005]) {
    const id = `s${size}`
    const recording = await recordings.create(id, Buffer.from('head\n'), failed)
    for (const times of [2700, 100, 200]) await recording.append(bytes(line.repeat(times)))
    const again = await recordings.reopen(id, size, failed)
    await again.append(bytes('!'))
    await again.end()
    t.is(await all(recordings, id), `${whole.slice(0, size)}!`, id)
  }
  await t.throwsAsync(recordings.reopen('s1', 3, failed), { code: 'gone' })
})

test('chunks joined during a read are neither missed nor read twice', async (t) => {
  const { database, recordings } = await open(t)
  const recording = await recordings.create('s1', Buffer.from('head\n'), failed)
  const pieces = [500_000, 500_000, 100_000, 100_000].map((size, n) => String(n).repeat(size))
  for (const piece of pieces) await recording.append(bytes(piece))
  const read: Buffer[] = []
  for await (const block of recordings.content('s1')) {
    if (read.length === 0) {
      t.deepEqual(await chunksOf(database), [0, 500_005, 1_000_005, 1_100_005])
      await recording.end()
      t.deepEqual(await chunksOf(database), [0, 500_005, 1_000_005])
    }
    read.push(Buffer.from(block))
  }
  t.is(read.length, 2)
  t.true(Buffer.concat(read).equals(Buffer.from(`head\n${pieces.join('')}`)))
})

test('damage in a recording is reported with its position', async (t) => {
  const { database, recordings } = await open(t)
  const recording = await recordings.create('s1', Buffer.from('head\n'), failed)
  for (const text of ['one\n', 'two\n', 'three\n']) await recording.append(bytes(text))
  t.is(await all(recordings, 's1', 13), 'head\none\ntwo\n')
  await t.throwsAsync(all(recordings, 's1', 1000), { code: 'gone', message: /ends at byte 19, not 1000/ })
  await database.ask('api', 'delete from rsm.recording_chunks where start = 9')
  await t.throwsAsync(all(recordings, 's1'), {
    code: 'gone',
    message: /s1 is damaged: bytes 9 to 13 are missing/,
  })
  // A disk that returns other bytes: the sum is of the written ones.
  await database.ask('api', 'alter table rsm.recording_chunks alter column sum drop expression')
  await database.ask('api', `update rsm.recording_chunks set data = 'onE' where start = 5`)
  await t.throwsAsync(all(recordings, 's1', 7), { code: 'gone', message: /bytes 5 to 8/ })
  t.is(await all(recordings, 's1', 5), 'head\n')
})

test('an append waits while PostgreSQL is down, and is stored once', async (t) => {
  const own = await startPostgres(atExit)
  const { recordings } = await open(t, await own.database())
  const recording = await recordings.create('s1', Buffer.from('head\n'), failed)
  for (let n = 0; n < 5; n++) {
    const appended = recording.append(bytes(`${n}\n`))
    for (let turn = 0; turn < n; turn++) await setImmediate()
    own.stop('immediate')
    own.start()
    await appended
  }
  await recording.end()
  t.is(await all(recordings, 's1'), 'head\n0\n1\n2\n3\n4\n')
})

test('A04 recordings that were moved aside are removed once they are old enough', async (t) => {
  const { database, recordings } = await open(t)
  const day = 24 * 3600_000
  const now = Date.parse('2026-03-10T12:00:00.000Z')
  for (const id of ['s1', 's2']) await (await recordings.create(id, Buffer.from(id), failed)).end()
  t.is(await recordings.moveAside(['s1'], now), "rsm.recordings with aside = '2026-03-10T12:00:00.000Z'")
  await t.throwsAsync(recordings.read('s1'), { code: 'gone' })
  const counts = async () => [
    (await database.ask('api', 'select from rsm.recordings')).length,
    (await chunksOf(database)).length,
  ]
  const age = (at: number) => now + 3 * day - at
  await recordings.orphans.sweep(0, age)
  await recordings.orphans.sweep(4, age)
  t.deepEqual(await counts(), [2, 2])
  await recordings.orphans.sweep(3, age)
  t.deepEqual(await counts(), [1, 1])
  t.is(await all(recordings, 's2'), 's2')
})
