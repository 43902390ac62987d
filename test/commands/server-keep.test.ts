import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import test, { type ExecutionContext } from 'ava'
import { openDataDirectory } from '../../src/disk/data-directory.ts'
import { backupOffline, restoreKeys } from '../../src/server/app/offline.ts'
import type { ServerOptions } from '../../src/server/app/options.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../helpers/clients/tasks.ts'
import { mountSmallDisk } from '../helpers/faults/small-disk.ts'
import { adminLogin, adminPassword, startTestServer, type TestServer } from '../helpers/servers/server.ts'
import { until } from '../helpers/until.ts'

async function place(t: ExecutionContext, options: Partial<ServerOptions> = {}) {
  const server = await startTestServer(t, options)
  const env = cleanEnv(temporaryDirectory(t))
  const rsm = (command: string, argv: string[] = [], input = '') =>
    runRsm(['server', command, ...argv, '--data-dir', server.dataDir], env, input)
  return { server, rsm }
}

/** Ended tasks with output, oldest first. */
async function withTasks(server: TestServer, count: number): Promise<string[]> {
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  agent.serve(() => ({ output: 'x'.repeat(10_000) }))
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    ids.push(await startTask(server, [identity.hostId]))
    await finished(server, ids.at(-1) ?? '')
  }
  await agent.cut()
  return ids
}

const login = (server: TestServer, password: string) =>
  server.api('POST', '/api/auth/login', { ...adminLogin, password })

test('rsm server reset-password gives a user a new password and ends all tokens, with and without a running server', async (t) => {
  const { server, rsm } = await place(t)
  await server.data('POST', '/api/tokens', { name: 'pipeline' })
  const reset = await rsm('reset-password', ['ADMIN', '--password-stdin'], 'another password\n')
  t.is(reset.exit, 0, reset.stderr)
  t.is(reset.stdout, 'admin has a new password; 1 session and 1 personal access token have ended\n')
  t.is((await server.api('GET', '/api/auth/me')).status, 401)
  t.is((await login(server, adminPassword)).status, 401)
  const answer = await login(server, 'another password')
  t.is(answer.status, 200)
  server.token = answer.body.data.token
  const { content } = await server.data('GET', '/api/audit?action=user.resetPassword')
  t.like(content[0], { actor: { type: 'system' }, object: { type: 'user', name: 'admin' } })

  const short = await rsm('reset-password', ['admin', '--password-stdin'], 'short\n')
  t.regex(short.stderr, /the new password must have 8 to 1024 characters/)
  const long = await rsm('reset-password', ['admin', '--password-stdin'], 'another password\n\n')
  t.regex(long.stderr, /stdin has more than one line/)
  const unknown = await rsm('reset-password', ['nosuch', '--password-stdin'], 'another password\n')
  t.is(unknown.exit, 5)
  t.regex(unknown.stderr, /no such user: nosuch\n.*the administrators are: admin/)

  // Refused before the password prompt, which requires a terminal.
  const asked = await rsm('reset-password', ['nosuch'], '')
  t.is(asked.exit, 5, asked.stderr)
  t.regex((await rsm('reset-password', ['admin'], '')).stderr, /no terminal to ask "New password"/)

  await server.stop()
  const alone = await rsm('reset-password', ['admin', '--password-stdin', '--json'], 'a third password\n')
  t.is(alone.exit, 0, alone.stderr)
  t.like(JSON.parse(alone.stdout), { username: 'admin', role: 'ADMIN', enabled: true, sessions: 1 })
  await server.restart()
  const third = await login(server, 'a third password')
  t.is(third.status, 200)
  server.token = third.body.data.token
  t.is((await server.data('GET', '/api/audit?action=user.resetPassword')).content.length, 2)
})

test('rsm server retention lists output over the size limit, oldest first, and removes it', async (t) => {
  const { server, rsm } = await place(t, { maxOutputBytes: 25_000 })
  const [first = '', second = '', third = ''] = await withTasks(server, 3)
  const dry = await rsm('retention', ['--dry-run'])
  t.is(dry.exit, 0, dry.stderr)
  t.regex(
    dry.stdout,
    /^1 task, the oldest, 10\.\d kB of output, over the limit of 25\.0 kB\nkept: 2 tasks, 20\.\d kB of output\n$/,
  )
  t.is((await server.api('GET', `/api/tasks/${first}`)).status, 200)
  const asked = await rsm('retention')
  t.regex(asked.stderr, /use --yes to remove it/)
  const done = await rsm('retention', ['--yes', '--json'])
  t.like(JSON.parse(done.stdout), {
    removed: true,
    bySize: { tasks: 1 },
    byAge: { tasks: 0 },
    kept: { tasks: 2 },
  })
  t.is((await server.api('GET', `/api/tasks/${first}`)).status, 404)
  for (const id of [second, third]) t.is((await server.api('GET', `/api/tasks/${id}`)).status, 200)
  t.false(existsSync(join(server.dataDir, 'tasks', first)))
  t.regex((await rsm('retention', ['--dry-run'])).stdout, /^nothing is past its retention\n/)
  t.is((await server.data('GET', '/api/audit?action=server.retention')).content.length, 1)

  await server.stop()
  const alone = await rsm('retention', ['--yes', '--max-output-bytes', '15K', '--json'])
  t.like(JSON.parse(alone.stdout), {
    removed: true,
    maxOutputBytes: 15_360,
    bySize: { tasks: 1 },
    kept: { tasks: 1 },
  })
  await server.restart()
  t.is((await server.api('GET', `/api/tasks/${second}`)).status, 404)
  t.is((await server.api('GET', `/api/tasks/${third}`)).status, 200)
  t.regex(
    (await rsm('retention', ['--max-output-bytes', 'much'])).stderr,
    /--max-output-bytes takes a size, not much/,
  )
})

test('housekeeping enforces the size limit soon after the start', async (t) => {
  const { server } = await place(t, { maxOutputBytes: 15_000, firstSweepAfter: 50 })
  const [first = '', second = ''] = await withTasks(server, 2)
  await server.restart()
  await until(
    'the task is removed',
    async () => (await server.api('GET', `/api/tasks/${first}`)).status === 404,
  )
  t.is((await server.api('GET', `/api/tasks/${second}`)).status, 200)
})

test('rsm server status and log-level require a running server', async (t) => {
  const { server, rsm } = await place(t)
  await server.enroll('web1')
  const status = await rsm('status')
  t.is(status.exit, 0, status.stderr)
  t.regex(status.stdout, new RegExp(`^pid +${process.pid}$`, 'm'))
  t.regex(status.stdout, /^hosts +1$/m)
  t.regex(status.stdout, /^writes +accepted$/m)
  t.like(JSON.parse((await rsm('status', ['--json'])).stdout), {
    hosts: 1,
    runningTasks: 0,
    logLevel: 'ERROR',
  })
  t.is((await rsm('log-level', ['WARN'])).stdout, 'the log level is WARN; it was ERROR\n')
  t.is(JSON.parse((await rsm('status', ['--json'])).stdout).logLevel, 'WARN')
  t.is((await server.data('GET', '/api/audit?action=server.logLevel')).content.length, 1)
  t.is((await rsm('log-level', ['LOUD'])).exit, 2)
  await server.stop()
  for (const [command, ...argv] of [['status'], ['log-level', 'INFO']] as const)
    t.is((await rsm(command, argv)).exit, 4)
})

test('an error about a data directory in use names the process', async (t) => {
  const { server, rsm } = await place(t)
  await server.stop()
  const held = await openDataDirectory(server.dataDir)
  const refused = await rsm('compact')
  await held.release()
  t.is(refused.exit, 6)
  t.regex(refused.stderr, new RegExp(`is in use by pid ${process.pid} since`))
  t.is((await rsm('compact')).exit, 0)
})

test('a backup without keys says so; keys of another backup can be added after its restore', async (t) => {
  const { server, rsm } = await place(t)
  const home = temporaryDirectory(t)
  const at = (name: string) => join(home, name)
  await writeFile(at('passphrase'), 'a long passphrase\n', { mode: 0o600 })
  const keys = ['--passphrase-file', at('passphrase')]
  const { hostId } = await server.enroll('web1')
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'web2', ip: '192.0.2.2' })
  const plain = await rsm('backup', [at('plain')])
  const copied = `copy ${server.dataDir}/keys once, or use --with-keys --passphrase-file FILE`
  t.is(plain.stderr, `rsm: the keys are not in it: ${copied}\n`)
  t.is((await rsm('backup', [at('sealed'), '--with-keys', ...keys])).stderr, '')
  const restore = (...argv: string[]) =>
    runRsm(['server', 'restore', ...argv, '--data-dir', at('back')], cleanEnv(home))
  t.regex((await restore(at('plain'))).stderr, /the keys are missing: rsm server start refuses/)
  const added = await restore(at('sealed'), '--keys-only', ...keys)
  t.regex(`${added.exit} ${added.stdout}`, /^0 .*back\/keys: the keys of the backup of 20\S+\n$/)
  for (const name of ['seal.key', 'signing.key'])
    t.deepEqual(
      await readFile(join(at('back'), 'keys', name)),
      await readFile(join(server.dataDir, 'keys', name)),
    )
  const back = await startTestServer(t, { dataDir: at('back') })
  const reasonOf = async (host: number) => (await back.data('GET', `/api/hosts/${host}`)).statusReason
  t.is(await reasonOf(hostId), 'not heard since the restore')
  t.is(await reasonOf(id), 'never heard')
})

test('the warning of a backup does not name the data directory if the keys are elsewhere', async (t) => {
  const keysDir = join(temporaryDirectory(t), 'elsewhere')
  const { server, rsm } = await place(t, { keysDir })
  const { stderr } = await rsm('backup', [join(temporaryDirectory(t), 'plain')])
  t.regex(stderr, /^rsm: the keys are not in it: copy the server's keys once, /)
  t.false(stderr.includes(server.dataDir))
})

test('keys of a backup are added only to an unused directory of the same store without keys', async (t) => {
  const passphrase = 'a long passphrase'
  const backup = async (server: TestServer, withKeys: boolean) => {
    const options = { withOutput: true, ...(withKeys && { passphrase }) }
    const { stream } = await backupOffline(server.dataDir, undefined, options)
    return stream
  }
  const [{ server }, { server: other }] = [await place(t), await place(t)]
  await other.stop()
  const add = async (from: TestServer, withKeys = true) =>
    restoreKeys(await backup(from, withKeys), server.dataDir, passphrase)
  await t.throwsAsync(add(other), { code: 'conflict', message: /is in use by pid/ })
  await server.stop()
  await t.throwsAsync(add(server), { code: 'conflict', message: /keys holds \S+ already$/ })
  const keys = join(server.dataDir, 'keys')
  const sealed = await buffer(await backup(server, true))
  await rename(keys, `${keys}.away`)
  await t.throwsAsync(add(other, false), { code: 'conflict', message: 'the backup holds no keys' })
  await t.throwsAsync(add(other), { message: /are not those of/ })
  t.false(existsSync(keys))
  await writeFile(keys, '')
  const blocked = {
    code: 'unavailable',
    message: `${keys} cannot be restored: a part of this path is a file`,
  }
  await t.throwsAsync(restoreKeys(Readable.from([sealed]), server.dataDir, passphrase), blocked)
  await rm(keys)
  await restoreKeys(Readable.from([sealed]), server.dataDir, passphrase)
  await server.restart()
})

test('a backup removes temporary files of killed backups, and keeps those that may still be written', async (t) => {
  const { server, rsm } = await place(t)
  const directory = temporaryDirectory(t)
  const file = join(directory, 'backup')
  // No process has this pid: it is above the highest of Linux.
  const names = [
    'backup.4999999-0123456789ab.tmp',
    'backup.4999998-0123456789ab.tmp',
    'other.4999999-0123456789ab.tmp',
  ]
  for (const name of names) await writeFile(join(directory, name), 'half')
  const longAgo = new Date(Date.now() - 3_600_000)
  for (const at of [0, 2]) await utimes(join(directory, names[at] ?? ''), longAgo, longAgo)
  const made = await rsm('backup', [file])
  t.is(made.exit, 0, made.stderr)
  t.deepEqual((await readdir(directory)).sort(), ['backup', ...names.slice(1)].sort())
  await server.stop()
})

test('a backup on a full disk fails with exit code 6, says so, and leaves no file', async (t) => {
  const disk = mountSmallDisk(4096)
  if (disk === null) {
    t.pass('skipped: no file system can be mounted here')
    return
  }
  t.teardown(() => disk.unmount())
  const { server, rsm } = await place(t)
  const content = randomBytes(100_000).toString('base64')
  await server.data('POST', '/api/scripts', { name: 's', type: 'BASH', content: `# ${content}` })
  const { exit, stderr } = await rsm('backup', [join(disk.directory, 'backup')])
  t.is(exit, 6, stderr)
  t.regex(stderr, /can't write .*backup: the disk is full/)
  t.deepEqual(await readdir(disk.directory), [])
})
