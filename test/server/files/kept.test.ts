import { randomBytes } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { openDirectoryFiles } from '../../../src/server/embedded/files/directory-files.ts'
import { createFileKeeper } from '../../../src/server/files/files.ts'
import { opaqueId } from '../../../src/server/ids.ts'
import { createLocalFacts } from '../../../src/server/local-facts.ts'
import type { FileRecord } from '../../../src/server/seams/records/file.ts'
import type { TaskRecord } from '../../../src/server/seams/records/task.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { agentReads, sendBytes, upload } from '../../helpers/clients/files.ts'
import { believed } from '../../helpers/faults/believed-clock.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { schedule, task } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

const capabilities = { files: true }
const copyOf = (fileId: string, hostId: number) => ({
  copy: { fileId, path: '/srv/f', kind: 'FILE' },
  target: { hostIds: [hostId] },
})

test('A06 a backup brings files back, whole, begun and secret, and the doctor names one that is damaged', async (t) => {
  const server = await startTestServer(t)
  const home = temporaryDirectory(t)
  const rsm = (...argv: string[]) => runRsm(['server', ...argv], cleanEnv(home))
  const identity = await server.enroll('web1')
  const bytes = randomBytes(100_000)
  const { fileId } = await upload(server, bytes)
  const { fileId: secret } = await upload(server, bytes, 'secret=true')
  const { data: begun } = await sendBytes(server, 'POST', '/api/files')
  await sendBytes(server, 'PUT', `/api/files/${begun.fileId}?offset=0`, 'begun')
  await writeFile(join(home, 'passphrase'), 'a passphrase for tests\n', { mode: 0o600 })
  const keys = ['--passphrase-file', join(home, 'passphrase')]
  const [file, dataDir] = [join(home, 'backup'), join(home, 'restored')]
  t.is((await rsm('backup', file, '--with-keys', ...keys, '--data-dir', server.dataDir)).exit, 0)
  await server.stop()
  t.is((await rsm('restore', file, '--data-dir', dataDir, ...keys)).exit, 0)
  t.is((await rsm('doctor', '--data-dir', dataDir)).exit, 0)
  const restored = await startTestServer(t, { dataDir })
  t.like(await restored.data('GET', `/api/files/${begun.fileId}`), { offset: 5, isComplete: false })
  t.like((await sendBytes(restored, 'PUT', `/api/files/${begun.fileId}?offset=5&end=true`, '!')).data, {
    size: 6,
  })
  const agent = await ScriptedAgent.link(restored, identity, { capabilities, storeId: 'another' })
  for (const id of [fileId, secret]) {
    await restored.data('POST', '/api/tasks', copyOf(id, identity.hostId))
    await agent.next('COPY_FILE', ({ copy }) => copy.file.fileId === id)
    t.deepEqual((await agentReads(restored, identity, id)).bytes, bytes)
  }
  await restored.stop()
  await writeFile(join(dataDir, 'files', fileId), 'damage', { flag: 'r+' })
  const looked = await rsm('doctor', '--data-dir', dataDir)
  t.is(looked.exit, 1)
  t.regex(looked.stdout, new RegExp(`file ${fileId}: the file is damaged`))
})

test('uploads go after a day unless a task or a schedule names them, fetched files with their task, secret ones with the last that runs', async (t) => {
  const { context } = await startInsides(t)
  const { store, keys, log } = context
  const facts = createLocalFacts()
  const directory = temporaryDirectory(t)
  let now = Date.parse('2026-06-01T00:00:00.000Z')
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
  now += 24 * 3600_000 + 1
  t.is(await keeper.sweep(), 1)
  t.deepEqual(await there(), [used.id, secret.id, planned.id, 'ended-7'].toSorted())

  const [unheard, waiting] = [await add(true), await add(true)]
  await put('unheard', { status: 'RUNNING', copy: copyOf(unheard), hasSecretFile: true })
  t.is(await keeper.sweep(), 0)
  // As where its server was killed before it heard of it.
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

  // What the store does not know, as where a server ended between the two.
  await writeFile(join(directory, unused.id), 'left')
  await writeFile(join(directory, opaqueId(now)), 'young')
  await keeper.sweep()
  t.deepEqual(await readdir(directory).then((names) => names.length), 2)
})

test('A06 what a backup without output has left out is no damage to the doctor', async (t) => {
  const server = await startTestServer(t)
  const home = temporaryDirectory(t)
  const rsm = (...argv: string[]) => runRsm(['server', ...argv], cleanEnv(home))
  const { fileId } = await upload(server, randomBytes(1000))
  await writeFile(join(home, 'passphrase'), 'a passphrase for tests\n', { mode: 0o600 })
  const keys = ['--passphrase-file', join(home, 'passphrase')]
  const [file, dataDir] = [join(home, 'backup'), join(home, 'restored')]
  const made = await rsm(
    'backup',
    file,
    '--without-output',
    '--with-keys',
    ...keys,
    '--data-dir',
    server.dataDir,
  )
  t.is(made.exit, 0)
  await server.stop()
  t.is((await rsm('restore', file, '--data-dir', dataDir, ...keys)).exit, 0)
  const looked = await rsm('doctor', '--data-dir', dataDir)
  t.regex(looked.stdout, new RegExp(`a file is not there: .*${fileId}`))
  t.notRegex(looked.stdout, /damaged|ENOENT/)
})
