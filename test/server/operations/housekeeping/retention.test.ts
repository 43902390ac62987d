import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import { createRetention, isPastRetention } from '../../../../src/server/operations/housekeeping/retention.ts'
import { followLog } from '../../../../src/server/services/logs/logs.ts'
import { createReadersOfTasks } from '../../../../src/server/services/logs/readers.ts'
import { createFileOutputs } from '../../../../src/server/storage/files/outputs/file-outputs.ts'
import { createFileResults } from '../../../../src/server/storage/files/results.ts'
import { opaqueId, timeOfId } from '../../../../src/server/storage/ids.ts'
import type { TaskRecord } from '../../../../src/server/storage/records/task.ts'
import { believed } from '../../../helpers/faults/believed-clock.ts'
import { startInjectedServer } from '../../../helpers/servers/server.ts'
import { startInsides } from '../../../helpers/servers/services.ts'
import { task } from '../../../helpers/servers/store-records.ts'

const day = 24 * 3600_000
const now = Date.parse('2026-06-01T00:00:00.000Z')
const daysAgo = (days: number) => now - days * day

/** Ended or running tasks with output and results, and a sweep at `now`. */
async function keeping(t: ExecutionContext, days: number) {
  const { context } = await startInsides(t)
  const { store, hints } = context
  const directory = await mkdtemp(join(tmpdir(), 'rsm-retention-'))
  const onFatal = (error: unknown) => {
    throw error
  }
  const outputs = createFileOutputs(directory, hints, onFatal)
  const results = createFileResults(directory)
  const readers = createReadersOfTasks(context.shortLived)
  t.teardown(async () => {
    await outputs.close()
    await rm(directory, { recursive: true, force: true })
  })
  const clock = { now: () => now, monotonic: () => performance.now() }
  const retention = () =>
    createRetention(
      { store, outputs, results, readers, agreed: believed(() => clock.now()), clock, log: context.log },
      { days, maxOutputBytes: 0 },
    )
  let made = daysAgo(100)
  return {
    directory,
    clock,
    readers,
    results,
    outputs,
    sweep: () => retention().sweep(),
    context: { ...context, outputs, readers },
    async add(endedDaysAgo: number | null): Promise<TaskRecord> {
      made += 1000
      const completedAt = endedDaysAgo === null ? null : new Date(daysAgo(endedDaysAgo)).toISOString()
      const status = endedDaysAgo === null ? 'RUNNING' : 'SUCCESS'
      const record = task(opaqueId(made), { completedAt, status })
      await store.transact((tx) => tx.put('tasks', record))
      const entry = { hostId: 1, stream: 'stdout', timestamp: record.createdAt, data: 'x' } as const
      for (let sequence = 0; sequence < 3; sequence++) await outputs.append(record.id, { ...entry, sequence })
      if (completedAt) await results.write(record.id, { script: 'true', results: [] })
      await outputs.finish(record.id)
      return record
    },
    has: async (id: string) => (await store.get('tasks', id)) !== undefined,
    folders: async () => (await readdir(directory)).toSorted(),
  }
}

test('ended tasks past their retention are removed with all files; younger and running ones stay', async (t) => {
  const kept = await keeping(t, 30)
  const old = await kept.add(30.01)
  const young = await kept.add(29.99)
  const running = await kept.add(null)
  t.is(await kept.sweep(), 1)
  t.deepEqual(await Promise.all([old, young, running].map(({ id }) => kept.has(id))), [false, true, true])
  t.deepEqual(await kept.folders(), [young.id, running.id].toSorted())
  t.deepEqual((await kept.outputs.read(old.id, { after: 0, limit: 10 })).entries, [])
  t.is(await kept.results.read(old.id), null)
  t.is((await kept.outputs.read(young.id, { after: 0, limit: 10 })).entries.length, 3)
})

test('a retention of 0 keeps everything forever', async (t) => {
  const kept = await keeping(t, 0)
  const { id } = await kept.add(90)
  t.is(await kept.sweep(), 0)
  t.true(await kept.has(id))
  t.false(isPastRetention(id, 0, believed(() => now).age()))
})

test('a task whose log is being read is removed only after the reader leaves', async (t) => {
  const kept = await keeping(t, 30)
  const record = await kept.add(60)
  const reading = followLog(kept.context, record, {}, new AbortController().signal)
  await reading.next()
  t.is(await kept.sweep(), 0)
  t.true(await kept.has(record.id))
  await reading.return(undefined)
  t.is(await kept.sweep(), 1)
  t.false(await kept.has(record.id))
})

test('a task whose log is read through another server of the store is not removed either', async (t) => {
  const kept = await keeping(t, 30)
  const [read, left] = [await kept.add(60), await kept.add(60)]
  const context = { ...kept.context, readers: createReadersOfTasks(kept.context.shortLived) }
  const reading = followLog(context, read, {}, new AbortController().signal)
  await reading.next()
  t.is(await kept.sweep(), 1)
  t.deepEqual([await kept.has(read.id), await kept.has(left.id)], [true, false])
  await reading.return(undefined)
  t.is(await kept.sweep(), 1)
  t.false(await kept.has(read.id))
})

test('A04 the folder of an unknown task is moved aside, and removed after the retention', async (t) => {
  const kept = await keeping(t, 30)
  const orphan = opaqueId(daysAgo(40))
  await mkdir(join(kept.directory, orphan))
  await writeFile(join(kept.directory, orphan, 'output.log'), 'precious')
  await mkdir(join(kept.directory, 'of another program'))
  const running = await kept.add(null)
  await kept.sweep()
  t.deepEqual(await kept.folders(), [running.id, 'of another program', 'orphaned'].toSorted())
  const aside = join(kept.directory, 'orphaned', '2026-06-01T00-00-00.000Z')
  t.is(await readFile(join(aside, orphan, 'output.log'), 'utf8'), 'precious')
  kept.clock.now = () => now + 30 * day - 1
  await kept.sweep()
  t.deepEqual(await readdir(aside), [orphan])
  kept.clock.now = () => now + 30 * day
  await kept.sweep()
  t.deepEqual(await readdir(join(kept.directory, 'orphaned')), [])
})

test('an id contains its creation time; other strings have none', (t) => {
  const made = Date.now() + day
  t.is(timeOfId(opaqueId(made)), made)
  for (const other of ['', 'abc', 'I'.repeat(26), '../../../../../../../../etc', '0'.repeat(27)])
    t.is(timeOfId(other), null)
})

test('requests for a task past its retention are answered with 410, for an unknown task with 404', async (t) => {
  const server = await startInjectedServer(t, { taskRetention: 7 })
  const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  const idOf = (at: number) => {
    let text = ''
    for (let time = at; text.length < 10; time = Math.floor(time / 32)) text = digits[time % 32] + text
    return text.padEnd(26, '0')
  }
  const old = idOf(Date.now() - 8 * day)
  const young = idOf(Date.now() - 6 * day)
  for (const path of ['', '/logs?after=100', '/logs?follow=true', '/script']) {
    const gone = await server.api('GET', `/api/tasks/${old}${path}`)
    t.is(gone.status, 410, path)
    t.regex(gone.body.message, /no longer kept/)
    t.is((await server.api('GET', `/api/tasks/${young}${path}`)).status, 404, path)
  }
  t.is((await server.api('POST', `/api/tasks/${old}/cancel`)).status, 410)
})
