import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstat, mkdir, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import test from 'ava'
import { control } from '../../../../src/cli/command/control.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../../fixtures/rsm.ts'
import { startInjectedServer } from '../../../helpers/servers/server.ts'

const nothing = { cancelPending: false }

test('A02 a server answers without a token on a socket in its data directory that only its user can open', async (t) => {
  const server = await startInjectedServer(t)
  const { dataDir } = server
  const found = await stat(join(dataDir, 'control.sock'))
  t.true(found.isSocket())
  t.is(found.mode & 0o777, 0o600)
  await t.throwsAsync(control(dataDir, 'confirm-restore', nothing), {
    code: 'conflict',
    message: /nothing is held/,
  })
  const unknown = control(dataDir, 'no-such' as 'confirm-restore', nothing)
  await t.throwsAsync(unknown, { code: 'not_found', message: /unknown operation POST \/no-such/ })
  await server.stop()
  await t.throwsAsync(lstat(join(dataDir, 'control.sock')), { code: 'ENOENT' })
  await t.throwsAsync(control(dataDir, 'confirm-restore', nothing), {
    code: 'unreachable',
    message: `no server is running on the data directory ${dataDir}`,
  })
})

test('A02 a socket left by a killed server does not block the next one', async (t) => {
  const dataDir = temporaryDirectory(t)
  const path = join(dataDir, 'control.sock')
  // A killed process leaves its socket behind, like a killed server.
  const code = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
  await once(spawn(process.execPath, ['-e', code]), 'exit')
  t.true((await lstat(path)).isSocket())
  await t.throwsAsync(control(dataDir, 'confirm-restore', nothing), { code: 'unreachable' })
  await startInjectedServer(t, { dataDir })
  await t.throwsAsync(control(dataDir, 'confirm-restore', nothing), { message: /nothing is held/ })
})

test('A02 the path of a data directory may exceed the length limit of socket paths', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'x'.repeat(90), 'y'.repeat(90))
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const server = await startInjectedServer(t, { dataDir })
  t.true((await lstat(join(dataDir, 'control.sock'))).isSocket())
  await t.throwsAsync(control(dataDir, 'confirm-restore', nothing), { message: /nothing is held/ })
  await server.stop()
  await t.throwsAsync(lstat(join(dataDir, 'control.sock')), { code: 'ENOENT' })
})

test('A02 rsm server confirm-restore reports its result and the directory it looked in', async (t) => {
  const home = temporaryDirectory(t)
  const { dataDir } = await startInjectedServer(t)
  const run = (dir: string) => runRsm(['server', 'confirm-restore', '--data-dir', dir], cleanEnv(home))
  const idle = await run(dataDir)
  t.is(idle.exit, 6)
  t.regex(idle.stderr, /nothing is held/)
  const nowhere = await run(join(home, 'none'))
  t.is(nowhere.exit, 5)
  t.regex(nowhere.stderr, /the data directory .*none is not that of a server/)
})

test('A02 a connection to the socket that sends no HTTP or closes mid-request does not harm the server', async (t) => {
  const { dataDir } = await startInjectedServer(t)
  for (const text of ['\0\0\0', 'POST /confirm-restore HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{']) {
    const socket = connect(join(dataDir, 'control.sock'))
    await once(socket, 'connect')
    socket.end(text)
    socket.resume()
    await once(socket, 'close')
  }
  await t.throwsAsync(control(dataDir, 'confirm-restore', nothing), { message: /nothing is held/ })
})
