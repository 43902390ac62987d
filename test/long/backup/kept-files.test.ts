import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { agentReads, sendBytes, upload } from '../../helpers/clients/files.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const capabilities = { files: true }
const copyOf = (fileId: string, hostId: number) => ({
  copy: { fileId, path: '/srv/f', kind: 'FILE' },
  target: { hostIds: [hostId] },
})

test('A06 a backup restores complete, incomplete and secret files, and the doctor names a damaged one', async (t) => {
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

test('A06 the doctor does not report files omitted by a backup without output as damaged', async (t) => {
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
  t.regex(looked.stdout, new RegExp(`a file is missing: .*${fileId}`))
  t.notRegex(looked.stdout, /damaged|ENOENT/)
})
