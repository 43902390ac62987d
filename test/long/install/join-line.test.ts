import { execFile, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { connect, createServer as createTlsServer } from 'node:tls'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import { joinString, readJoin } from '../../../src/core/endpoint.ts'
import { keptCertificate } from '../../../src/server/tls/tls.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { handOut } from '../../helpers/servers/hand-out.ts'
import { executable, executableName, startSelfSigned } from '../../helpers/servers/self-signed.ts'

/** Shells that may be the sh of a host. */
const shells = [['dash'], ['busybox', 'sh'], ['bash', '--posix']].filter(
  ([program = '', ...words]) => spawnSync(program, [...words, '-c', ':']).status === 0,
)

interface Ran {
  readonly exit: number
  readonly stdout: string
  readonly stderr: string
}
const run = (argv: readonly string[], env: Record<string, string>, input = ''): Promise<Ran> =>
  new Promise((resolved) => {
    const [program = '', ...words] = argv
    const child = execFile(program, words, { env }, (error, stdout, stderr) =>
      resolved({ exit: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
    )
    // A program that refuses its input may not read all of it.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })

/** A separate home directory on this machine that stands for a host. */
async function newHost(t: ExecutionContext) {
  const home = temporaryDirectory(t)
  return { home, env: { ...cleanEnv(home), HOME: home, RSM_AGENT_LOG_LEVEL: 'ERROR' } }
}

// Skipped (2026-11-22) without curl, and with systemd, because it would create a unit of this machine's user.
const whereFit =
  existsSync('/run/systemd/system') || spawnSync('curl', ['--version']).error ? test.skip : test

whereFit('the line of rsm hosts join installs rsm on a host without it, and its agent joins', async (t) => {
  const { env, dataDir } = await startSelfSigned(t)
  const before = await runRsm(['hosts', 'join'], env)
  t.regex(
    before.stdout,
    /^ RSM_AGENT_ENROLL_TOKEN=/,
    'without an executable, the line is that of rsm agent run',
  )
  await handOut({ dataDir }, executable, executableName)
  const joined = await runRsm(['hosts', 'join', '-t', 'role=web'], env)
  const line = joined.stdout
  t.regex(line, /^ s=\$\(.*--pinnedpubkey 'sha256\/\/.* rsm agent install -\n$/)
  t.notRegex(line, /rsm_enr_|curl[^;]*\| *sh/)
  const { home, env: host } = await newHost(t)
  const ran = await run(['sh', '-c', `${line.trimEnd()} --user --hostname web1`], host)
  // Without a service manager, the installer prints the command to run.
  t.is(ran.exit, 6, ran.stderr)
  t.regex(ran.stderr, /the agent is installed, but was not started\n[^]*crontab -e/)
  t.is(readFileSync(join(home, '.local/bin/rsm'), 'utf8'), executable)
  const [, command = ''] = /@reboot (.*)/.exec(ran.stderr) ?? []
  const agent = spawn('sh', ['-c', command], { env: host, stdio: 'ignore' })
  t.teardown(async () => {
    agent.kill()
    await once(agent, 'exit')
  })
  t.is((await runRsm(['hosts', 'wait', 'web1', '--new', '--timeout', '30s'], env)).exit, 0)
  const executed = await runRsm(['exec', '-t', 'role=web', '--', 'echo joined'], env)
  t.is(executed.stdout, 'web1: joined\n')
  const settings = readFileSync(join(home, 'config/rsm/agent.env'), 'utf8')
  t.regex(settings, /^RSM_AGENT_TLS_FINGERPRINT=sha256\/\//m)
  t.notRegex(settings, /rsm_enr_/)
})

whereFit('a relay with another key cannot run anything: curl and wget refuse it', async (t) => {
  const { env, url, dataDir } = await startSelfSigned(t)
  await handOut({ dataDir }, executable, executableName)
  const { key, cert } = await keptCertificate(
    temporaryDirectory(t),
    'localhost',
    { debug() {}, info() {}, warn() {}, error() {} },
    Date.now(),
  )
  const relay = createTlsServer({ key, cert }, (socket) => {
    const onward = connect({ host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false })
    socket.pipe(onward).pipe(socket)
    for (const end of [socket, onward]) end.on('error', () => {})
  })
  relay.on('tlsClientError', () => {})
  await new Promise<void>((listening) => relay.listen(0, '127.0.0.1', listening))
  t.teardown(() => relay.close())
  const { port } = relay.address() as { port: number }
  const { stdout } = await runRsm(['hosts', 'join'], env)
  const line = stdout.replaceAll(new URL(url).host, `127.0.0.1:${port}`).trimEnd()
  const { home, env: host } = await newHost(t)
  const byCurl = await run(['sh', '-c', line], host)
  t.not(byCurl.exit, 0)
  t.regex(byCurl.stderr, /public key does not match pinned public key/)
  if (!spawnSync('wget', ['--version']).error) {
    const byWget = await run(['sh', '-c', line.replace('command -v curl', 'false')], host)
    t.not(byWget.exit, 0)
    t.regex(byWget.stderr, /public key does not match pinned public key/)
  }
  t.false(existsSync(join(home, '.local')))
  const changed = stdout.replace(/(?<= = ')[0-9a-f]{64}/, '0'.repeat(64)).trimEnd()
  const other = await run(['sh', '-c', changed], host)
  t.is(other.exit, 1)
  t.is(other.stderr, 'rsm: install.sh does not match the checksum in this line: nothing was run\n')
})

/** Unsupported hosts. */
const hosts: readonly (readonly [what: string, programs: Record<string, string>, said: RegExp])[] = [
  ['another system', { uname: 'echo Darwin' }, /builds for Linux only, not for Darwin/],
  [
    'another machine',
    { uname: 'case $1 in -s) echo Linux ;; *) echo riscv64 ;; esac' },
    /no build for riscv64, only for x86_64 and aarch64/,
  ],
  ['an old glibc', { ldd: 'echo "ldd (GNU libc) 2.17"' }, /has glibc 2\.17, and rsm needs 2\.28 or newer/],
]
const token = `rsm_enr_${'a'.repeat(43)}`

/** Serves the executable like a busy server: each file only at the third request for it. */
async function startBusy(t: ExecutionContext) {
  const sums = `${createHash('sha256').update(executable).digest('hex')}  ${executableName}\n`
  const files = new Map([
    ['/dl/SHA256SUMS', sums],
    [`/dl/${executableName}`, executable],
  ])
  const asked: string[] = []
  const server = createServer(({ url = '' }, response) => {
    asked.push(url)
    const before = asked.filter((each) => each === url).length - 1
    const file = files.get(url)
    response.writeHead(file === undefined ? 404 : ([503, 502][before] ?? 200)).end(file)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}`, asked }
}

/** Programs with which a host may download. */
const fetchers = ['curl', 'wget'].filter((program) => !spawnSync(program, ['--version']).error)

for (const shell of shells) {
  const sh = shell.join(' ')
  const install = (host: Record<string, string>, input: string, ...words: string[]) =>
    run(
      [...shell, 'packaging/install.sh', ...words, 'rsm', 'agent', 'install', '-', '--user', '--dry-run'],
      host,
      input,
    )

  for (const [what, programs, message] of hosts)
    test(`install.sh in ${sh} refuses a host with ${what} and says why`, async (t) => {
      const { home, env } = await newHost(t)
      await mkdir(join(home, 'bin'))
      for (const [program, text] of Object.entries(programs)) {
        await writeFile(join(home, 'bin', program), `#!/bin/sh\n${text}\n`)
        await chmod(join(home, 'bin', program), 0o755)
      }
      const ran = await install(
        { ...env, PATH: `${home}/bin:${process.env['PATH']}` },
        joinString({ url: 'https://x', token }),
      )
      t.is(ran.exit, 1)
      t.regex(ran.stderr, message)
    })

  for (const fetcher of fetchers)
    test(`install.sh in ${sh} retries a busy server with ${fetcher}, but not a missing file`, async (t) => {
      const { home, env } = await newHost(t)
      await mkdir(join(home, 'bin'))
      for (const program of await readdir('/usr/bin'))
        if (program === fetcher || !['curl', 'wget'].includes(program))
          await symlink(`/usr/bin/${program}`, join(home, 'bin', program))
      const { url, asked } = await startBusy(t)
      const ran = await install({ ...env, PATH: join(home, 'bin') }, joinString({ url, token }))
      t.is(ran.exit, 0, ran.stderr)
      t.is(readFileSync(join(home, '.local/bin/rsm'), 'utf8'), executable)
      const [file, sums] = [`/dl/${executableName}`, '/dl/SHA256SUMS']
      t.deepEqual(asked, [sums, sums, sums, `${file}.xz`, file, file, file])
    })

  test(`install.sh in ${sh} refuses a cut or altered join string, and a wrong executable`, async (t) => {
    const { env, url, dataDir } = await startSelfSigned(t)
    const release = await handOut({ dataDir }, executable, executableName)
    const { home, env: host } = await newHost(t)
    const made = JSON.parse((await runRsm(['hosts', 'join', '--json'], env)).stdout) as { join: string }
    t.is(readJoin(made.join).url, url)
    for (const [text, message] of [
      ['', /not a join string/],
      ['rsm-join:', /altered/],
      [made.join.slice(0, -9), /was cut: its end is missing/],
      [made.join.slice(20), /not a join string/],
    ] as const) {
      const ran = await install(host, text)
      t.is(ran.exit, 1, text)
      t.regex(ran.stderr, message)
    }
    const arch = executableName.slice('rsm-linux-'.length)
    const wrong = await install(host, made.join, `${arch}=${'0'.repeat(64)}`)
    t.is(wrong.exit, 1)
    t.regex(
      wrong.stderr,
      /nothing was installed: the file from .* is not the executable with the sha256 0{64}/,
    )
    t.deepEqual(await readdir(join(home, '.local/bin')), [])
    const right = await install(host, made.join, `${arch}=${release.sha256}`)
    t.is(right.exit, 0, right.stderr)
    t.regex(right.stdout, /installed .*\/\.local\/bin\/rsm\n[^]*would write .*agent\.env/)
    const file = join(home, 'join-string')
    await writeFile(file, made.join)
    const again = await install(host, '', '--join-file', file)
    t.is(again.exit, 0, again.stderr)
    t.regex(again.stdout, /is there already/)
    t.false(existsSync(file), 'the file held a token')
  })
}

// Skipped (2026-11-22) without shellcheck.
const whereChecked = spawnSync('shellcheck', ['--version']).error ? test.skip : test
whereChecked('install.sh passes shellcheck for a POSIX shell', (t) => {
  const checked = spawnSync('shellcheck', ['--shell=sh', 'packaging/install.sh'], { encoding: 'utf8' })
  t.is(checked.stdout, '')
  t.is(checked.status, 0)
})
