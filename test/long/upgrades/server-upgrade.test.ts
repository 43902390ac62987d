import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import {
  chmod,
  copyFile,
  cp,
  mkdir,
  readdir,
  readFile,
  rm,
  rmdir,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { control } from '../../../src/cli/command/control.ts'
import type { FaultPoint } from '../../../src/core/fault-point.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { entries, finished, startTask } from '../../helpers/clients/tasks.ts'
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'
import { executableOf, installVersion, script } from '../../helpers/programs/other-version.ts'
import { newReleaseKey, signedBy } from '../../helpers/releases/release-key.ts'
import { adminLogin, adminPassword, restCaller, type TestServer } from '../../helpers/servers/server.ts'
import { onSteadyPort } from '../../helpers/servers/steady-port.ts'
import { until } from '../../helpers/until.ts'

interface Place {
  root: string
  /** Path of the executable that the server runs. */
  target: string
  dataDir: string
  /** `url`, `token` and calls, like a server in this process; `restart` and `stop` do nothing. */
  server: TestServer
  upgrade: (file: string, ...words: string[]) => ReturnType<typeof runRsm>
  /** Starts the installed version of the server. */
  start: () => Promise<void>
}

/** Directory of versions, each installed once for all tests as a copy of this build. */
const shared = mkdtempSync(join(tmpdir(), 'rsm-versions-'))
test.after.always(() => rmSync(shared, { recursive: true, force: true }))
const versions = new Map<string, Promise<string>>()
const fault = 'dist/test/fixtures/fault-point.js'
function installed(version: string): Promise<string> {
  const prefix = join(shared, version)
  const found =
    versions.get(version) ??
    installVersion(prefix, version)
      .then(() => cp(resolve(fault), join(prefix, fault)))
      .then(() => prefix)
  versions.set(version, found)
  return found
}
const executableOfVersion = async (root: string, version: string) =>
  executableOf(root, await installed(version))

/** Upgrades to executables made here, which are unsigned. */
const taken = ['server', 'upgrade', '--allow-unsigned']
const statusOf = (dataDir: string) => control(dataDir, 'status', {})

/** A server that runs from an executable, here a script, that reports `version`. */
async function place(t: ExecutionContext, version = '0.1.0'): Promise<Place> {
  const root = temporaryDirectory(t)
  const target = join(root, 'rsm')
  await copyFile(await executableOfVersion(root, version), target)
  const dataDir = join(root, 'data')
  const env = cleanEnv(root, { RSM_ADMIN_PASSWORD: adminPassword, RSM_LOG_LEVEL: 'ERROR' })
  // Any server on this directory at the end was started by this test.
  t.teardown(async () => {
    const last = await statusOf(dataDir).catch(() => null)
    if (last !== null) process.kill(last.pid, 'SIGKILL')
  })
  let port = 0
  const start = async () => {
    const words = ['server', 'start', '--port', String(port), '--data-dir', dataDir]
    const { shows } = startRsm(words, env, { program: join(await installed(version), 'bin/run.js') })
    await shows('listening')
  }
  await onSteadyPort((free) => {
    port = free
    return start()
  })
  const server: TestServer = {
    url: `http://127.0.0.1:${port}`,
    dataDir,
    token: '',
    ...restCaller(() => server),
    restart: async () => undefined,
    stop: async () => undefined,
  }
  server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
  const upgrade = (file: string, ...words: string[]) =>
    runRsm([...taken, file, '--executable', target, '--data-dir', dataDir, ...words], cleanEnv(root))
  return { root, target, dataDir, server, upgrade, start }
}

test('rsm server upgrade replaces the version while a script keeps running, and is in the audit log', async (t) => {
  const { root, target, dataDir, server, upgrade } = await place(t)
  const { hostId } = await realAgent(t, server, { hostname: 'web1' })
  const file = await executableOfVersion(root, '0.2.0')
  const go = join(root, 'go')
  const content = `echo x >> ${root}/starts; echo before; while [ ! -e ${go} ]; do sleep 0.1; done; echo after; exit 9`
  const taskId = await startTask(server, [hostId], { script: { content } })
  await until('it has begun', async () => (await entries(server, taskId)).length > 0)
  const { pid } = await statusOf(dataDir)
  const { exit, stdout, stderr } = await upgrade(file, '--json')
  t.is(exit, 0, stderr)
  const done = JSON.parse(stdout)
  t.like(done, { from: '0.1.0', to: '0.2.0', executable: target, former: `${target}.former` })
  t.regex(stderr, /^rsm: the signature of the file was not verified$/m)
  const after = await statusOf(dataDir)
  t.like(after, { version: '0.2.0', ready: true })
  t.not(after.pid, pid)
  t.deepEqual(await readFile(target), await readFile(file))
  t.regex(await readFile(`${target}.former`, 'utf8'), /0\.1\.0/)
  t.true(existsSync(done.backup))
  t.false(existsSync(join(dataDir, 'store.before-upgrade')))
  await writeFile(go, '')
  const [result] = (await finished(server, taskId)).results
  t.like(result, { status: 'FAILED', exitCode: 9, outputComplete: true })
  t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'before\nafter\n')
  t.is(await readFile(join(root, 'starts'), 'utf8'), 'x\n')
  const { content: audited } = await server.data('GET', '/api/audit?action=server.upgrade')
  const sha256 = createHash('sha256')
    .update(await readFile(file))
    .digest('hex')
  t.like(audited[0], { outcome: 'SUCCESS', detail: { from: '0.1.0', to: '0.2.0', sha256 } })
})

test('a version that does not become ready is rolled back, with the store as before, even if it changed it', async (t) => {
  const { root, target, dataDir, server, upgrade } = await place(t)
  const before = await readFile(target)
  const { token } = await server.data('POST', '/api/tokens', { name: 'kept' })
  const bad = await script(
    join(root, 'bad'),
    `[ "$1" != --version ] || { echo 'rsm/0.3.0 linux-x64 node-v22.0.0'; exit; }
sed -i 's/"format":[0-9]*/"format":99/' ${dataDir}/store/store.json
echo 'rsm: no such thing' >&2; exit 6`,
  )
  const { exit, stderr } = await upgrade(bad)
  t.is(exit, 6)
  t.regex(stderr, /rsm 0\.3\.0 did not become ready: it ended with exit code 6; rsm 0\.1\.0 runs again/)
  t.like(await statusOf(dataDir), { version: '0.1.0', ready: true })
  t.deepEqual(await readFile(target), before)
  server.token = token
  t.is((await server.data('GET', '/api/auth/me')).username, 'admin')
  t.deepEqual(
    (await readdir(dataDir)).filter((name) => name.startsWith('store')),
    ['store'],
  )
  const audit = await runRsm(['server', 'doctor', '--data-dir', dataDir], cleanEnv(root))
  t.is(audit.exit, 0, audit.stdout)
  server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
  const { content } = await server.data('GET', '/api/audit?action=server.upgrade')
  t.deepEqual(
    content.map(({ outcome }: { outcome: string }) => outcome),
    ['FAILED', 'SUCCESS'],
  )
})

test('a build with a release key runs only signed files, and one without a key requires --sha256 or --allow-unsigned', async (t) => {
  const { root, target, dataDir } = await place(t)
  const key = newReleaseKey()
  const prefix = join(root, 'with-key')
  await installVersion(prefix, '0.1.0')
  const description = JSON.parse(await readFile(join(prefix, 'package.json'), 'utf8')) as object
  await writeFile(join(prefix, 'package.json'), JSON.stringify({ ...description, releaseKey: key.held }))
  const ran = join(root, 'ran')
  // Older than the server: an accepted file is then refused as a downgrade, and nothing is stopped.
  const file = await script(join(root, 'new'), `touch ${ran}; echo 'rsm/0.0.9 linux-x64 node-v22.0.0'`)
  const bytes = await readFile(file)
  const sum = ['--sha256', createHash('sha256').update(bytes).digest('hex')]
  const otherSum = ['--sha256', '0'.repeat(64)]
  const unsigned = ['--allow-unsigned']
  const isOlder = /the file is rsm 0\.0\.9, older than the server/
  const keyed = join(prefix, 'bin/run.js')
  const keyless = join(await installed('0.1.0'), 'bin/run.js')
  const mended = / add --sha256 HEX from SHA256SUMS of the release, or --allow-unsigned$/m
  const of = (version: string, signed: string | Buffer, by = key) =>
    JSON.stringify(signedBy(by, version, signed))
  const cases: readonly (readonly [
    program: string,
    sig: string | null,
    words: string[],
    says: RegExp,
    runs?: true,
  ])[] = [
    [keyless, null, [], /cannot be checked: this build of rsm has no release key/],
    [keyless, of('0.0.9', bytes), [], mended],
    [keyless, null, [...otherSum, ...unsigned], /has the sha256/],
    [keyless, null, sum, isOlder, true],
    [keyless, null, unsigned, isOlder, true],
    [
      keyed,
      null,
      [...sum, ...unsigned],
      /has no signature: there is no .*new\.sig\n.*put the \.sig of the release beside it/,
    ],
    // A wrong signature is never ignored.
    [keyed, '{}', [...sum, ...unsigned], /is not the signature of a release/],
    [keyed, of('0.0.9', 'other bytes'), unsigned, /is not the file that .*new\.sig signs/],
    [keyed, of('0.0.9', bytes, newReleaseKey()), sum, /is not signed by the release key/],
    [keyed, of('0.3.0', bytes), [], /is version 0\.0\.9, but its signature is for 0\.3\.0/, true],
    [keyed, of('0.0.9', bytes), [], isOlder, true],
  ]
  const { pid } = await statusOf(dataDir)
  for (const [program, sig, more, says, runs = false] of cases) {
    await rm(ran, { force: true })
    await (sig === null ? rm(`${file}.sig`, { force: true }) : writeFile(`${file}.sig`, sig))
    const words = ['server', 'upgrade', file, '--executable', target, '--data-dir', dataDir, ...more]
    const { exit, stderr } = await startRsm(words, cleanEnv(root), { program }).done
    t.is(exit, says === isOlder ? 6 : 2, stderr)
    t.regex(stderr, says)
    t.is(existsSync(ran), runs, stderr)
  }
  t.is((await statusOf(dataDir)).pid, pid)
})

test('a failed exchange is in the audit log, and a server that starts as another version counts as failed', async (t) => {
  const { root, target, dataDir, server, upgrade } = await place(t)
  const before = await readFile(target)
  const outcomes = async () => {
    server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
    const { content } = await server.data('GET', '/api/audit?action=server.upgrade')
    return content.map(({ outcome }: { outcome: string }) => outcome)
  }
  const stores = async () => (await readdir(dataDir)).filter((name) => name.startsWith('store'))
  await mkdir(`${target}.former`)
  const kept = await upgrade(await executableOfVersion(root, '0.2.0'))
  t.not(kept.exit, 0)
  t.like(await statusOf(dataDir), { version: '0.1.0', ready: true })
  t.deepEqual(await outcomes(), ['FAILED', 'SUCCESS'])
  t.deepEqual(await stores(), ['store'])
  await rmdir(`${target}.former`)
  const former = join(await installed('0.1.0'), 'bin/run.js')
  const other = await script(
    join(root, 'other'),
    `[ "$1" != --version ] || { echo 'rsm/0.2.0 linux-x64 node-v22.0.0'; exit; }
exec ${process.execPath} ${former} "$@"`,
  )
  const { exit, stderr } = await upgrade(other)
  t.is(exit, 6, stderr)
  t.regex(stderr, /the server started as rsm 0\.1\.0: it does not run from/)
  t.deepEqual(await outcomes(), ['FAILED', 'SUCCESS', 'FAILED', 'SUCCESS'])
  t.deepEqual(await readFile(target), before)
  t.deepEqual(await stores(), ['store'])
})

test('a backups directory that is a symlink is not followed', async (t) => {
  const { root, dataDir, upgrade } = await place(t)
  const elsewhere = join(root, 'elsewhere')
  await mkdir(elsewhere)
  await symlink(elsewhere, join(dataDir, 'backups'))
  const { pid } = await statusOf(dataDir)
  const { exit, stderr } = await upgrade(await executableOfVersion(root, '0.2.0'))
  t.is(exit, 6, stderr)
  t.regex(stderr, /backups is a link or a file, not a directory\n.*--backup FILE/)
  t.deepEqual(await readdir(elsewhere), [])
  t.is((await statusOf(dataDir)).pid, pid)
})

test('an upgrade with a wrong, foreign or older file, or one that is not a program, changes nothing', async (t) => {
  const { root, target, dataDir, upgrade } = await place(t, '0.5.0')
  const { pid } = await statusOf(dataDir)
  const older = await executableOfVersion(root, '0.4.0')
  const text = join(root, 'text')
  await writeFile(text, 'hello')
  const foreign = join(root, 'foreign')
  // An ELF header for another machine: s390.
  const head = Buffer.alloc(64)
  head.set(Buffer.from('7f454c4602020100', 'hex'))
  head.writeUInt16BE(2, 16)
  head.writeUInt16BE(22, 18)
  await writeFile(foreign, head)
  await chmod(foreign, 0o755)
  const other = await script(join(root, 'other'), 'echo something else')
  const cases: readonly (readonly [words: string[], exit: number, says: RegExp])[] = [
    [[older], 6, /the file is rsm 0\.4\.0, older than the server \(0\.5\.0\)\n.*--allow-downgrade/],
    [[older, '--sha256', '0'.repeat(64)], 2, /has the sha256 [0-9a-f]{64}, not 0{64}/],
    [[text], 2, /does not run on this machine/],
    [[foreign], 2, /does not run on this machine/],
    [[other], 2, /is not an rsm executable/],
    [[join(root, 'none')], 2, /cannot read .*none: there is no such file/],
    [[root], 2, /is not a file/],
  ]
  const before = await readFile(target)
  for (const [words, exit, says] of cases) {
    const ran = await upgrade(words[0] ?? '', ...words.slice(1))
    t.is(ran.exit, exit, ran.stderr)
    t.regex(ran.stderr, says)
  }
  t.is((await statusOf(dataDir)).pid, pid)
  t.deepEqual(await readFile(target), before)
  t.deepEqual(
    (await readdir(root)).filter((name) => name.startsWith('rsm.')),
    [],
  )
  const down = await upgrade(older, '--allow-downgrade')
  t.is(down.exit, 0, down.stderr)
  t.is((await statusOf(dataDir)).version, '0.4.0')
})

test('a server that is down, or runs from Node and package files, is not upgraded', async (t) => {
  const { root, dataDir } = await place(t)
  const run = (directory: string) =>
    runRsm(['server', 'upgrade', '/bin/true', '--data-dir', directory], cleanEnv(root))
  const nowhere = await run(join(root, 'nowhere'))
  t.is(nowhere.exit, 4)
  t.regex(nowhere.stderr, /no server is running on the data directory/)
  const files = await run(dataDir)
  t.is(files.exit, 6)
  t.regex(files.stderr, /runs from Node and the files of a package/)
})

test('a full disk at the executable changes nothing', async (t) => {
  const disk = mountSmallDisk(64 * 1024)
  if (disk === null) {
    t.pass('skipped: no file system can be mounted here')
    return
  }
  t.teardown(() => disk.unmount())
  const { root, dataDir } = await place(t)
  const target = await script(join(disk.directory, 'rsm'), 'exit 1')
  const big = join(root, 'big')
  await writeFile(big, Buffer.alloc(1024 * 1024, '#'))
  const { pid } = await statusOf(dataDir)
  const words = ['server', 'upgrade', big, '--executable', target, '--data-dir', dataDir]
  const { exit, stderr } = await runRsm(words, cleanEnv(root))
  t.is(exit, 6, stderr)
  t.regex(stderr, /the disk is full/)
  t.is((await statusOf(dataDir)).pid, pid)
  t.deepEqual(await readdir(disk.directory), ['rsm'])
})

const points: readonly [FaultPoint, isBad: boolean][] = [
  ['upgrade.kept.after', false],
  ['upgrade.former.after', false],
  ['upgrade.exchanged.after', false],
  ['upgrade.executableBack.after', true],
  ['upgrade.storeBack.after', true],
]
for (const [point, isBad] of points)
  test(`rsm server upgrade that is killed at ${point} leaves one of the two versions, which starts with its data`, async (t) => {
    const { root, target, dataDir, server } = await place(t)
    await server.data('POST', '/api/clusters', { name: 'kept' })
    const good = await executableOfVersion(root, '0.2.0')
    const bad = await script(
      join(root, 'bad'),
      `[ "$1" != --version ] || { echo 'rsm/0.3.0 linux-x64 node-v22.0.0'; exit; }; exit 6`,
    )
    const file = isBad ? bad : good
    const words = [...taken, file, '--executable', target, '--data-dir', dataDir]
    const env = cleanEnv(root, { NODE_OPTIONS: '--conditions=rsm-faults', RSM_FAULT: point })
    const program = join(await installed('0.1.0'), 'bin/run.js')
    const killed = await startRsm(words, env, { program }).done
    t.is(killed.exit, 6, killed.stderr)
    const inPlace = point === 'upgrade.exchanged.after' ? '0.2.0' : '0.1.0'
    const says = new RegExp(
      String.raw`the upgrade from rsm 0\.1\.0 to 0\.[23]\.0, begun at [^,]+, was interrupted, and no server is running\s+` +
        `start the server with its previous command line: rsm ${inPlace} is installed`,
    )
    t.regex(killed.stderr, says)
    const once = await runRsm(words, cleanEnv(root))
    t.is(once.exit, 6)
    t.regex(once.stderr, says)
    const doctor = await runRsm(['server', 'doctor', '--json', '--data-dir', dataDir], cleanEnv(root))
    const { findings } = JSON.parse(doctor.stdout) as { findings: { code: string; advice: string }[] }
    t.regex(
      findings.find(({ code }) => code === 'upgrade')?.advice ?? '',
      /^start the server with its previous command line/,
    )
    const again = ['server', 'start', '--port', new URL(server.url).port, '--data-dir', dataDir]
    const child = spawn(target, again, { env: cleanEnv(root), stdio: 'ignore' })
    t.teardown(() => child.kill('SIGKILL'))
    await until('it runs', async () => (await statusOf(dataDir).catch(() => null))?.ready === true)
    const { version } = await statusOf(dataDir)
    t.is(version, inPlace)
    server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
    t.is((await server.data('GET', '/api/clusters')).content[0].name, 'kept')
    t.deepEqual(
      (await readdir(dataDir)).filter((name) => /store|upgrade/.test(name)),
      ['store'],
    )
  })

for (const signal of ['SIGKILL', 'SIGINT', 'SIGHUP'] as const)
  test(`an upgrade in progress continues to its end if its command gets ${signal}`, async (t) => {
    const { root, dataDir } = await place(t)
    const words = [...taken, await executableOfVersion(root, '0.2.0')]
    const command = startRsm(
      [...words, '--executable', join(root, 'rsm'), '--data-dir', dataDir],
      cleanEnv(root),
    )
    await command.shows('stopping rsm')
    command.child.kill(signal)
    await until('the new version is ready', async () => {
      const status = await statusOf(dataDir).catch(() => null)
      return status?.ready === true && status.version === '0.2.0'
    })
    const { exit, signal: endedBy, stderr } = await command.done
    t.is(endedBy ?? exit, signal === 'SIGKILL' ? 'SIGKILL' : 0, stderr)
    if (signal !== 'SIGKILL') t.regex(stderr, /the upgrade continues/)
  })
