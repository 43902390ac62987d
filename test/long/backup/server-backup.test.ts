import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdir, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { AuditVerifier, verifyAudit } from '../../../src/core/audit.ts'
import { sha256 } from '../../../src/disk/digest.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { entries, finished, startTask } from '../../helpers/clients/tasks.ts'
import { adminLogin, startTestServer, type TestServer } from '../../helpers/servers/server.ts'

const passphrase = 'a passphrase for tests'

/** A directory for backups, and a command line for it. */
async function place(t: ExecutionContext) {
  const home = temporaryDirectory(t)
  await writeFile(join(home, 'passphrase'), `${passphrase}\n`, { mode: 0o600 })
  const keys = ['--passphrase-file', join(home, 'passphrase')]
  return {
    home,
    keys,
    at: (name: string) => join(home, name),
    rsm: (...argv: string[]) => runRsm(['server', ...argv], cleanEnv(home)),
  }
}

/** Starts a server on a restored directory. */
const startRestored = async (t: ExecutionContext, dataDir: string): Promise<TestServer> =>
  startTestServer(t, { dataDir })

test('a backup during writes of eight clients has every previously acknowledged write, output, audit log and recordings', async (t) => {
  const server = await startTestServer(t)
  const { at, keys, rsm } = await place(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { terminal: true } })
  agent.serveTerminals()
  agent.serve(({ params }) => ({ output: `${'line '.repeat(2000)}${params['N']}\n` }))
  const run = async (n: number): Promise<string> => {
    const taskId = await startTask(server, [identity.hostId], { params: { N: String(n) } })
    await finished(server, taskId)
    return taskId
  }
  const { sessionId } = await server.data('POST', '/api/terminals', {
    hostId: identity.hostId,
    cols: 80,
    rows: 24,
  })
  const written: { scripts: number[]; tasks: string[] } = { scripts: [], tasks: [] }
  const over = new AbortController()
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let n = 0; !over.signal.aborted; n++) {
      if (writer === 0) written.tasks.push(await run(n))
      else {
        const script = { name: `script-${writer}-${n}`, type: 'BASH', content: `echo ${n}` }
        written.scripts.push((await server.data('POST', '/api/scripts', script)).id)
      }
    }
  })
  while (written.tasks.length < 5 || written.scripts.length < 100) await run(0)
  const before = { scripts: [...written.scripts], tasks: [...written.tasks] }
  const head: number = (await server.data('GET', '/api/audit?size=1')).content[0].id
  const made = await rsm('backup', at('b.tar.gz'), '--data-dir', server.dataDir, '--with-keys', ...keys)
  over.abort()
  await Promise.all(writers)
  t.is(made.exit, 0, made.stderr)
  t.regex(made.stdout, /b\.tar\.gz: [\d.]+ [kM]B, \d+ files, checked\n/)
  t.is((await stat(at('b.tar.gz'))).mode & 0o777, 0o600)
  t.true(written.scripts.length > before.scripts.length, 'writes continued during the backup')
  const output = new Map<string, unknown>()
  for (const id of before.tasks) output.set(id, await entries(server, id))
  await agent.cut()
  await server.stop()

  const back = await rsm('restore', at('b.tar.gz'), '--data-dir', at('restored'), ...keys)
  t.is(back.exit, 0, back.stderr)
  t.notRegex(back.stderr, /keys are missing/)
  const restored = await startRestored(t, at('restored'))
  for (const id of before.scripts) t.is((await restored.api('GET', `/api/scripts/${id}`)).status, 200)
  for (const [id, lines] of output) {
    t.is((await restored.data('GET', `/api/tasks/${id}`)).status, 'SUCCESS')
    t.deepEqual(await entries(restored, id), lines as never)
  }
  t.is((await restored.api('GET', `/api/terminals/${sessionId}/recording`)).status, 200)
  const { content } = await restored.data('GET', '/api/audit?size=500')
  const actions = content.map(({ action }: { action: string }) => action)
  t.true(actions.includes('server.restore'))
  t.true(content.some(({ id }: { id: number }) => id >= head))
  const { body } = await restored.api('GET', '/api/audit', undefined, { accept: 'application/x-ndjson' })
  t.is(await verifyAudit(Readable.from([Buffer.from(body.data)]), new AuditVerifier(sha256)), null)
})

test("a backup over REST by an ADMIN's session has no keys, and is in the audit log", async (t) => {
  const server = await startTestServer(t)
  const { at, rsm } = await place(t)
  const response = await fetch(`${server.url}/api/server/backup?withoutOutput=true`, {
    headers: { authorization: `Bearer ${server.token}` },
  })
  t.is(response.headers.get('content-type'), 'application/gzip')
  await writeFile(at('b.tar.gz'), Buffer.from(await response.arrayBuffer()))
  const back = await rsm('restore', at('b.tar.gz'), '--data-dir', at('restored'), '--json')
  t.is(back.exit, 0, back.stderr)
  t.like(JSON.parse(back.stdout), { hasKeys: false, hasOutput: false })
  t.false(existsSync(join(at('restored'), 'keys')))
  const { content } = await server.data('GET', '/api/audit?action=server.backup')
  t.like(content[0], { actor: { name: 'admin' }, outcome: 'SUCCESS' })
  const start = await rsm('start', '--port', '0', '--data-dir', at('restored'))
  t.is(start.exit, 6)
  t.regex(start.stderr, /keys\/seal\.key is missing, and the store was used with it/)
})

test('without a running server the command makes the backup itself, and does not change the store', async (t) => {
  const server = await startTestServer(t)
  const { at, rsm, home } = await place(t)
  await server.data('POST', '/api/scripts', { name: 'one', type: 'BASH', content: 'true' })
  await server.stop()
  const names = async () => (await readdir(join(server.dataDir, 'store'))).sort()
  const before = await names()
  const made = await rsm('backup', at('b.tar.gz'), '--data-dir', server.dataDir, '--json')
  t.is(made.exit, 0, made.stderr)
  t.like(JSON.parse(made.stdout), { file: at('b.tar.gz'), hasKeys: false, hasOutput: true, damaged: [] })
  t.deepEqual(await names(), before)
  t.is((await stat(at('b.tar.gz'))).mode & 0o777, 0o600)
  const kept = await rsm('backup', at('b.tar.gz'), '--data-dir', server.dataDir)
  t.regex(kept.stderr, /b\.tar\.gz already exists: use --yes to replace it/)
  t.is((await rsm('backup', at('b.tar.gz'), '--data-dir', server.dataDir, '--yes')).exit, 0)
  const nowhere = await rsm('backup', at('c.tar.gz'), '--data-dir', at('none'))
  t.is(nowhere.exit, 5)
  t.regex(nowhere.stderr, /none is not that of a server: it has no store/)
  const unwritable = await rsm('backup', at('no/such/b.tar.gz'), '--data-dir', server.dataDir)
  t.is(unwritable.exit, 2)
  t.regex(unwritable.stderr, /there is no such directory/)
  t.deepEqual((await readdir(home)).sort(), ['b.tar.gz', 'passphrase'])
  for (const [name, says] of [
    [home, 'a directory'],
    ['/dev/null', 'not a regular file'],
  ] as const) {
    const wrong = await rsm('backup', name, '--yes', '--data-dir', server.dataDir)
    t.is(wrong.exit, 2)
    t.regex(wrong.stderr, new RegExp(`${name} is ${says}\n.*name a file to write, or - for stdout`))
  }
  t.true((await stat('/dev/null')).isCharacterDevice())
})

const asRoot = process.getuid?.() === 0 ? test : test.skip // Only root may become another user.

asRoot("root can maintain another user's stopped server, and all files keep their owner", async (t) => {
  const server = await startTestServer(t)
  const { at, rsm } = await place(t)
  await server.stop()
  const owner = 65_534
  const files = async () => {
    const names = await readdir(server.dataDir, { recursive: true })
    return ['', ...names].map((name) => join(server.dataDir, name))
  }
  for (const path of await files()) await chown(path, owner, owner)
  await rm(join(server.dataDir, 'lock'))
  const dataDir = ['--data-dir', server.dataDir]
  const made = await rsm('backup', at('b.tar.gz'), ...dataDir)
  t.is(made.exit, 0, made.stderr)
  t.is((await stat(at('b.tar.gz'))).uid, 0)
  const { home } = await place(t)
  const reset = ['server', 'reset-password', 'admin', '--password-stdin', ...dataDir]
  for (const ran of [
    await runRsm(reset, cleanEnv(home), 'another password\n'),
    await rsm('compact', ...dataDir),
    await rsm('retention', '--yes', ...dataDir),
  ])
    t.is(ran.exit, 0, ran.stderr)
  for (const path of await files()) t.is((await stat(path)).uid, owner, path)
})

test('an interrupted restore leaves no file, and a restore through a link fills its target', async (t) => {
  const server = await startTestServer(t)
  const { home, at, rsm } = await place(t)
  await server.stop()
  t.is((await rsm('backup', at('b.tar.gz'), '--data-dir', server.dataDir)).exit, 0)
  await mkdir(at('real'))
  await symlink('real', at('link'))
  const linked = await rsm('restore', at('b.tar.gz'), '--data-dir', at('link'))
  t.is(linked.exit, 0, linked.stderr)
  t.true(existsSync(at('real/store/store.json')))
  const before = (await readdir(home)).sort()
  await promisify(execFile)('mkfifo', [at('slow')])
  const restore = startRsm(['server', 'restore', at('slow'), '--data-dir', at('r')], cleanEnv(home))
  // The restore waits for the second half of the backup.
  const slow = await open(at('slow'), 'w')
  const bytes = await readFile(at('b.tar.gz'))
  await slow.write(bytes.subarray(0, bytes.length >> 1))
  const isBegun = async () => (await readdir(home)).some((name) => name.startsWith('.r.'))
  while (!(await isBegun())) await new Promise((resolve) => setTimeout(resolve, 5))
  restore.child.kill('SIGINT')
  while (await isBegun()) await new Promise((resolve) => setTimeout(resolve, 5))
  // A thread that is reading a pipe delays the end of the process.
  await slow.close()
  t.is((await restore.done).exit, 130)
  t.deepEqual((await readdir(home)).sort(), [...before, 'slow'].sort())
})

test('an interrupted backup leaves no file', async (t) => {
  const server = await startTestServer(t)
  const { home, at } = await place(t)
  const noise = randomBytes(48 * 1024 * 1024)
  const identity = await server.enroll('web1')
  const taskId = await startTask(server, [identity.hostId], { queueSeconds: 0 })
  await finished(server, taskId)
  await writeFile(join(server.dataDir, 'tasks', taskId, 'output.log'), `${noise.toString('base64')}\n`)
  const backup = startRsm(['server', 'backup', at('b.tar.gz'), '--data-dir', server.dataDir], cleanEnv(home))
  while (!(await readdir(home)).some((name) => name.endsWith('.tmp')))
    await new Promise((resolve) => setTimeout(resolve, 5))
  backup.child.kill('SIGINT')
  t.is((await backup.done).exit, 130)
  t.deepEqual(await readdir(home), ['passphrase'])
})

test('a backup includes damaged output, omits a damaged script version, and names both; a damaged store is refused until compacted', async (t) => {
  const server = await startTestServer(t)
  const { at, rsm } = await place(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  agent.serve(() => ({ output: 'hello\n' }))
  const taskId = await startTask(server, [identity.hostId])
  await finished(server, taskId)
  const path = join(server.dataDir, 'tasks', taskId, 'output.log')
  const log = await readFile(path, 'latin1')
  await writeFile(path, log.replace('hello', 'hallo'), 'latin1')
  const { id } = await server.data('POST', '/api/scripts', { name: 's', type: 'BASH', content: 'true' })
  await server.data('PATCH', `/api/scripts/${id}`, { content: 'false' })
  const version = join('scripts', String(id), '1.json')
  await writeFile(join(server.dataDir, version), '')
  const made = await rsm('backup', at('b.tar.gz'), '--data-dir', server.dataDir)
  t.is(made.exit, 0)
  t.regex(
    made.stderr,
    new RegExp(
      `warning: task ${taskId}: the output is damaged: .*output.log, byte 0; the backup has it as found\n`,
    ),
  )
  t.regex(made.stderr, new RegExp(`warning: script ${id}: .*1.json is not JSON; the backup omits it\n`))
  const back = await rsm('restore', at('b.tar.gz'), '--data-dir', at('restored'))
  t.is(back.exit, 0)
  t.regex(back.stderr, /already damaged when the backup was made/)
  t.is(
    await readFile(at(join('restored', 'tasks', taskId, 'output.log')), 'latin1'),
    log.replace('hello', 'hallo'),
  )
  t.false(existsSync(at(join('restored', version))))
  const journal = join(server.dataDir, 'store', 'journal-000000000001.jsonl')
  const text = await readFile(journal, 'latin1')
  await writeFile(journal, text.replace('web1', 'web2'), { encoding: 'latin1', flag: 'r+' })
  const refused = await rsm('backup', at('c.tar.gz'), '--data-dir', server.dataDir)
  t.is(refused.exit, 6)
  t.regex(refused.stderr, /the store is damaged on disk: journal-000000000001\.jsonl, byte \d+/)
  t.regex(refused.stderr, /rsm server compact/)
  t.false(existsSync(at('c.tar.gz')))
  const compacted = await rsm('compact', '--data-dir', server.dataDir)
  t.is(compacted.exit, 0, compacted.stderr)
  t.regex(compacted.stdout, /^compacted the store: [\d.]+ k?B before, [\d.]+ k?B now\n$/)
  t.is((await rsm('backup', at('c.tar.gz'), '--data-dir', server.dataDir)).exit, 0)
})

test('a restored server holds pending executions, marks sent ones LOST, and continues after confirm-restore', async (t) => {
  const server = await startTestServer(t)
  const { at, keys, rsm } = await place(t)
  const [away, near] = [await server.enroll('web1'), await server.enroll('web2')]
  const agent = await ScriptedAgent.link(server, near)
  const waiting = await startTask(server, [away.hostId], { queueSeconds: 3600 })
  const sent = await startTask(server, [near.hostId])
  await agent.execution(sent)
  const made = await rsm('backup', at('b.tar.gz'), '--data-dir', server.dataDir, '--with-keys', ...keys)
  t.is(made.exit, 0, made.stderr)
  await agent.cut()
  await server.stop()
  t.is((await rsm('restore', at('b.tar.gz'), '--data-dir', at('restored'), ...keys)).exit, 0)
  const restored = await startRestored(t, at('restored'))
  const { restore } = await restored.data('GET', '/api/server/status')
  t.like(restore, { hostId: null, agentId: null, tasks: 1, executions: 1 })
  t.regex(restore.reason, /^rsm server restore brought back the backup of 20/)
  const [lost] = (await finished(restored, sent)).results
  t.is(lost?.status, 'LOST')
  await restored.restart()
  t.like((await restored.data('GET', '/api/server/status')).restore, { tasks: 1, executions: 1 })
  const confirmed = await rsm('confirm-restore', '--cancel-pending', '--data-dir', at('restored'))
  t.is(confirmed.exit, 0, confirmed.stderr)
  t.is((await finished(restored, waiting)).status, 'CANCELLED')
  t.is((await restored.data('GET', '/api/server/status')).restore, null)
  t.truthy((await restored.data('POST', '/api/auth/login', adminLogin)).token)
})

test('keys are sealed: a short or wrong passphrase is refused, and leaves no file', async (t) => {
  const server = await startTestServer(t)
  const { at, keys, rsm } = await place(t)
  await writeFile(at('short'), 'too short\n')
  await writeFile(at('wrong'), 'another passphrase\n')
  const backup = (...argv: string[]) => rsm('backup', at('b.tar.gz'), '--data-dir', server.dataDir, ...argv)
  const short = await backup('--with-keys', '--passphrase-file', at('short'))
  t.is(short.exit, 2)
  t.regex(short.stderr, /has fewer than 12 characters/)
  t.is((await backup('--with-keys')).exit, 2)
  t.is((await backup('--with-keys', ...keys)).exit, 0)
  const restore = (...argv: string[]) => rsm('restore', at('b.tar.gz'), '--data-dir', at('r'), ...argv)
  const wrong = await restore('--passphrase-file', at('wrong'))
  t.regex(wrong.stderr, /the passphrase does not open the keys of the backup/)
  t.false(existsSync(at('r')))
  const without = await restore()
  t.is(without.exit, 0)
  t.regex(
    without.stderr,
    /the keys are missing: .*\(they are in the backup: rsm server restore .* --keys-only /,
  )
})
