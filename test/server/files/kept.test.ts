import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { createFileKeeper } from '../../../src/server/files/files.ts'
import { openDirectoryFiles } from '../../../src/server/storage/files/directory-files.ts'
import { opaqueId } from '../../../src/server/storage/ids.ts'
import { createLocalFacts } from '../../../src/server/storage/local-facts.ts'
import type { FileRecord } from '../../../src/server/storage/records/file.ts'
import type { TaskRecord } from '../../../src/server/storage/records/task.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { believed } from '../../helpers/faults/believed-clock.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { schedule, task } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

test('a fetched file leaves room on the disk, as uploads do', async (t) => {
  const { context } = await startInsides(t)
  const files = await openDirectoryFiles(temporaryDirectory(t))
  const room = { size: 1000, available: 300 }
  const keeper = createFileKeeper({
    ...context,
    files: { ...files, room: () => Promise.resolve(room) },
    facts: createLocalFacts(),
    maxFileSize: 1000,
  })
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('bytes')
  }
  await context.store.transact((tx) => tx.put('tasks', task('runs', {})))
  const file = await keeper.fetched({ id: 'runs', createdById: 1 }, 7)
  const { offset } = await keeper.add(file, { bytes: bytes(), length: 5, offset: 0, end: false })
  t.is(offset, 5)
  room.available = 102
  await t.throwsAsync(keeper.add(file, { bytes: bytes(), length: 5, offset, end: false }), {
    code: 'too_large',
  })
  room.available = 90
  await t.throwsAsync(keeper.add(file, { bytes: bytes(), length: null, offset, end: true }), {
    code: 'too_large',
  })
  t.is(await files.size(file.id), 5)
})

test('uploads expire after a day unless a task or schedule uses them, fetched and secret files with their tasks', async (t) => {
  const { context } = await startInsides(t)
  const { store, keys, log } = context
  const facts = createLocalFacts()
  const directory = temporaryDirectory(t)
  let now = Date.now()
  const clock = { now: () => now, monotonic: () => performance.now() }
  const keeper = createFileKeeper({
    store,
    files: await openDirectoryFiles(directory),
    keys,
    facts,
    agreed: believed(clock.now),
    clock,
    log,
    maxFileSize: 1000,
  })
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('bytes')
  }
  const arrival = () => ({ bytes: bytes(), length: null, offset: 0, end: true })
  async function add(isSecret = false) {
    const begun = await keeper.begin({ userId: 1, size: null, sha256: null, isSecret })
    return (await keeper.add(begun, arrival())).file
  }
  const put = (id: string, more: Partial<TaskRecord>) =>
    store.transact((tx) => tx.put('tasks', task(id, more)))
  const copyOf = ({ id: fileId, size, sha256 }: FileRecord) => ({
    file: { fileId, size: size ?? 0, sha256: sha256 ?? '' },
    path: '/f',
    kind: 'FILE' as const,
  })
  const [unused, used, secret, planned] = [await add(), await add(), await add(true), await add(true)]
  const copy = { fileId: planned.id, path: '/f', kind: 'FILE' as const }
  await store.transact((tx) => tx.put('schedules', schedule(1, 'nightly', { copy })))
  await put('planned', { status: 'SUCCESS', copy: copyOf(planned), hasSecretFile: true })
  await put('ended', { status: 'SUCCESS', copy: copyOf(used) })
  for (const id of ['one', 'two'])
    await put(id, { status: 'RUNNING', copy: copyOf(secret), hasSecretFile: true })
  const fetched = await keeper.fetched({ id: 'ended', createdById: 1 }, 7)
  await keeper.add(fetched, arrival())
  const there = async () => (await readdir(directory)).filter((name) => name !== 'content').toSorted()
  const all = [unused.id, used.id, secret.id, planned.id, 'ended-7']
  t.is(await keeper.sweep(), 0)
  t.deepEqual(await there(), all.toSorted())

  await put('one', { status: 'FAILED', copy: copyOf(secret), hasSecretFile: true })
  facts.publish('taskEnded', { taskId: 'planned', status: 'SUCCESS' })
  facts.publish('taskEnded', { taskId: 'one', status: 'FAILED' })
  // An id may be some milliseconds ahead of its creation.
  now += 24 * 3600_000 + 60_000
  t.is(await keeper.sweep(), 1)
  t.deepEqual(await there(), [used.id, secret.id, planned.id, 'ended-7'].toSorted())

  const [unheard, waiting] = [await add(true), await add(true)]
  await put('unheard', { status: 'RUNNING', copy: copyOf(unheard), hasSecretFile: true })
  t.is(await keeper.sweep(), 0)
  // Simulates a server that was killed before it was notified.
  await put('unheard', { status: 'FAILED', copy: copyOf(unheard), hasSecretFile: true })
  t.is(await keeper.sweep(), 1)
  t.deepEqual(await there(), [used.id, secret.id, planned.id, waiting.id, 'ended-7'].toSorted())
  await keeper.remove(waiting)

  await put('two', { status: 'SUCCESS', copy: copyOf(secret), hasSecretFile: true })
  facts.publish('taskEnded', { taskId: 'two', status: 'SUCCESS' })
  await until('the secret file is gone', async () => (await there()).length === 3)
  t.is(await store.get('files', secret.id), undefined)
  t.is(await keeper.sweep(), 0)
  await store.transact((tx) => tx.remove('schedules', 1))
  t.is(await keeper.sweep(), 1)
  t.deepEqual(await there(), [used.id, 'ended-7'].toSorted())

  await store.transact((tx) => tx.remove('tasks', 'ended'))
  t.is(await keeper.sweep(), 2)
  t.deepEqual(await there(), [])
  t.deepEqual(await readdir(join(directory, 'content')), [])

  // Files unknown to the store, as after a crash between the two steps.
  await writeFile(join(directory, unused.id), 'left')
  await writeFile(join(directory, opaqueId(now)), 'young')
  await keeper.sweep()
  t.deepEqual(await readdir(directory).then((names) => names.length), 2)
})
