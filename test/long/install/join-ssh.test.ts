import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { commandLine } from '../../helpers/clients/command-line.ts'
import { deployPassword, hasSshHosts, managed, sshHosts } from '../../helpers/programs/ssh-hosts.ts'
import { handOut } from '../../helpers/servers/hand-out.ts'
import { executable, executableName, startSelfSigned } from '../../helpers/servers/self-signed.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'
import { until } from '../../helpers/until.ts'

// Skipped (2026-11-22) without hosts behind their own sshd, which require root, mounts, OpenSSH and sudo.
const whereFit = hasSshHosts ? test : test.skip

/** Installed login shells that parse a line differently from sh. */
const loginShells = ['fish', 'zsh'].filter((shell) => !spawnSync(shell, ['--version']).error)

/** A root with only busybox and a loader at the path of musl's: all of Alpine that the script checks. */
const ofMusl = `
mkdir -p /srv/musl/bin /srv/musl/lib /srv/musl/dev
mknod -m 666 /srv/musl/dev/null c 1 3
cp -L /lib64/ld-linux-x86-64.so.2 /srv/musl/lib/ld-musl-x86_64.so.1
for library in $(ldd /usr/bin/busybox | sed -n 's/.*=> \\([^ ]*\\).*/\\1/p'); do cp -L --parents $library /srv/musl; done
LC_ALL=C sed 's#/lib64/ld-linux-x86-64\\.so\\.2#/lib/ld-musl-x86_64.so.1\\x00\\x00\\x00#' /usr/bin/busybox > /srv/musl/bin/busybox
chmod 755 /srv/musl/bin/busybox
for name in sh cat head id ls sed uname sha256sum cut; do ln -s busybox /srv/musl/bin/$name; done
usermod -s /bin/sh root`
const hasMusl = process.arch === 'x64' && existsSync('/usr/bin/busybox')

/** A self-signed server of the real binary, a client logged in there, and hosts behind ssh. */
async function startWorld(t: ExecutionContext) {
  const hosts = sshHosts(t)
  const { env, dataDir, url } = await startSelfSigned(t, { PATH: `${hosts.bin}:${process.env['PATH']}` })
  const enrollments = async () => {
    const { stdout } = await runRsm(['enrollments', 'list', '--json'], env)
    return (JSON.parse(stdout) as { content: { uses: number }[] }).content
  }
  return { env, hosts, dataDir, url, enrollments }
}

/** Output for hosts without systemd, with the line to run on them. */
const unmanaged =
  /the host says: "the agent is installed, but was not started"\n +the host advises:\n +> this host has no systemd\. .*:\n +> (set -a; .*)\n/

whereFit(
  'hosts that join over ssh directly, through a jump host and with sudo are JOINED and usable',
  async (t) => {
    const { env, hosts, dataDir } = await startWorld(t)
    await handOut({ dataDir }, executable, executableName)
    await Promise.all([
      hosts.start('web1', { setup: `${managed}\necho 127.0.0.1 inside >> /etc/hosts` }),
      // Only web1 can resolve this name.
      hosts.start('db1', { setup: managed, config: ['HostName inside', 'HostKeyAlias db1'] }),
      hosts.start('app1', {
        setup: `${managed}\necho "deploy ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers.d/deploy`,
        config: ['User deploy'],
      }),
    ])
    const near = await runRsm(['hosts', 'join', '--ssh', 'web1,app1', '--sudo', '-t', 'role=web'], env)
    t.is(near.exit, 0, near.stderr)
    t.regex(near.stderr, /^rsm: 2 hosts: 2 JOINED in \d\S* m?s\n$/m)
    const far = await runRsm(['hosts', 'join', '--ssh', 'db1', '-J', 'web1', '-t', 'role=web', '--json'], env)
    t.is(far.exit, 0, far.stderr)
    const [of] = (JSON.parse(far.stdout) as { hosts: Record<string, unknown>[] }).hosts
    t.like(of, { host: 'db1', status: 'JOINED', exitCode: 0, copied: true, hostId: 3, hostname: 'db1' })
    const executed = await runRsm(['exec', '-t', 'role=web', '-N', '-b', '--', 'id -un'], env)
    t.is(executed.exit, 0, executed.stderr)
    t.is(executed.stdout, '---------------\napp1,db1,web1 (3)\n---------------\nroot\n')
  },
)

whereFit(
  'rsm hosts join --ssh prints the line to run on hosts without a service manager, and it works',
  async (t) => {
    const { env, hosts, dataDir, enrollments } = await startWorld(t)
    const machine = () => ['/etc/rsm', '/var/lib/rsm', '/usr/local/bin/rsm'].map((path) => existsSync(path))
    const before = machine()
    await handOut({ dataDir }, executable, executableName)
    await Promise.all([
      hosts.start('web1', { setup: 'echo 127.0.0.1 inside >> /etc/hosts' }),
      // Only web1 can resolve this name.
      hosts.start('db1', { config: ['HostName inside', 'HostKeyAlias db1'] }),
      hosts.start('app1', {
        setup: 'echo "deploy ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers.d/deploy',
        config: ['User deploy'],
      }),
    ])
    const near = await runRsm(['hosts', 'join', '--ssh', 'web1,app1', '--sudo', '-t', 'role=web'], env)
    t.is(near.exit, 1)
    t.is(near.stdout, '')
    t.regex(near.stderr, /^rsm: web1: FAILED/m, 'each failure is printed at once')
    t.regex(near.stderr, /^rsm: 2 hosts: 2 FAILED in \d\S* m?s\n$/m)
    // Without a service manager, the output has the line to run, once for both.
    const [, line = ''] = new RegExp(`^app1,web1: FAILED: ${unmanaged.source}`, 'm').exec(near.stderr) ?? []
    const far = await runRsm(['hosts', 'join', '--ssh', 'db1', '-J', 'web1', '-t', 'role=web', '--json'], env)
    t.is(far.exit, 6, 'for one host, the exit code is that of rsm agent install')
    const [of] = (JSON.parse(far.stdout) as { hosts: Record<string, unknown>[] }).hosts
    t.like(of, { host: 'db1', status: 'FAILED', exitCode: 6, copied: true, hostId: null })
    for (const name of ['web1', 'app1', 'db1']) {
      const jump = name === 'db1' ? ['-J', 'web1'] : []
      t.is(hosts.run(name, 'cat /usr/local/bin/rsm', jump), executable)
      t.is(
        hosts.run(name, 'cd /etc/rsm; stat -c "%n %U %a" *', jump),
        'agent.env root 600\nagent.token root 600\n',
      )
      hosts.run(name, `(${line}) </dev/null >/dev/null 2>&1 &`, jump)
    }
    t.is((await runRsm(['hosts', 'wait', 'web1,app1,db1', '--new', '--timeout', '60s'], env)).exit, 0)
    const executed = await runRsm(['exec', '-t', 'role=web', '-N', '-b', '--', 'id -un'], env)
    t.is(executed.stdout, '---------------\napp1,db1,web1 (3)\n---------------\nroot\n')
    t.deepEqual(
      (await enrollments()).map(({ uses }) => uses),
      [1, 1, 1],
      'one token for each host, and no other',
    )
    t.notRegex(hosts.words(), /rsm_enr_|rsm-join:/)

    const again = await runRsm(['hosts', 'join', '--ssh', 'web1', '--json'], env)
    t.like(
      JSON.parse(again.stdout).hosts[0],
      { status: 'FAILED', exitCode: 6, copied: false },
      'it is already installed',
    )
    t.deepEqual(machine(), before)
  },
)

whereFit('rsm hosts join --ssh prints why each host could not join', async (t) => {
  const { env, hosts, dataDir } = await startWorld(t)
  await handOut({ dataDir }, `${executable}# ${'x'.repeat(100_000)}\n`, executableName)
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const asDeploy = ['User deploy']
  await Promise.all([
    hosts.start('good', { setup: 'mount --bind /tmp /tmp; mount -o remount,bind,noexec /tmp' }),
    ...loginShells.map((shell) =>
      hosts.start(shell, {
        setup: `usermod -s $(command -v ${shell}) deploy; echo 'deploy ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/deploy`,
        config: asDeploy,
      }),
    ),
    hosts.start('readonly', { setup: 'mount -t tmpfs -o ro tmpfs /usr/local' }),
    hosts.start('noexec', { setup: 'mount -t tmpfs -o noexec tmpfs /usr/local' }),
    hosts.start('asks', { setup: 'echo "deploy ALL=(ALL) ALL" > /etc/sudoers.d/deploy', config: asDeploy }),
    hosts.start('without', { setup: 'mount --bind /dev/null "$(command -v sudo)"', config: asDeploy }),
    hosts.start('full', { setup: 'mount -t tmpfs -o size=4k tmpfs /usr/local' }),
    hosts.start('loud', {
      setup:
        "printf 'echo welcome\\necho hello >&2\\n' > /root/.bashrc; printf '#!/bin/sh\\necho Darwin\\n' > /usr/local/bin/uname; chmod 755 /usr/local/bin/uname",
    }),
    ...(hasMusl ? [hosts.start('alpine', { setup: ofMusl, sshd: ['ChrootDirectory /srv/musl'] })] : []),
    hosts.start('nologin', { setup: 'usermod -s /usr/sbin/nologin deploy', config: asDeploy }),
  ])
  hosts.configure('silent', [`Port ${(silent.address() as { port: number }).port}`])
  hosts.configure('refusing', ['Port 1'])
  hosts.configure('nowhere', ['HostName nowhere.invalid'])
  const names = 'good,readonly,noexec,asks,without,full,loud,nologin,silent,refusing,nowhere'
  const all = [names, ...loginShells, ...(hasMusl ? ['alpine'] : [])].join(',')
  const ran = await runRsm(['hosts', 'join', '--ssh', all, '--sudo', '-f', '14', '--json'], env)
  t.is(ran.exit, 1)
  const outcomes = (JSON.parse(ran.stdout) as { hosts: { host: string; error: string; hint: string }[] })
    .hosts
  const said = new Map(outcomes.map((each) => [each.host, each]))
  const errors: Record<string, RegExp> = {
    // The last step on a host without systemd.
    good: /^the host says: "the agent is installed, but was not started"$/,
    ...Object.fromEntries(
      loginShells.map((shell) => [shell, /^the host says: "the agent is installed, but was not started"$/]),
    ),
    ...(hasMusl && {
      alpine: /^the host says: "this host has musl \(Alpine\), and rsm needs glibc 2\.28 or newer/,
    }),
    readonly: /^the host says: "can't write to \/usr\/local\/bin: add --prefix DIR, as --prefix \/opt\/rsm"$/,
    noexec: /^the host says: "it does not run in \/usr\/local\/bin \(mounted noexec\? then add --prefix DIR/,
    asks: /^sudo asks for a password$/,
    without: /^the host says: "there is no sudo on this host: log in as root/,
    full: /^the host says: "can't write \/usr\/local\/bin\/\.rsm\.\w+: is the disk full\?"$/,
    loud: /^the host says: "there are builds for Linux only/,
    nologin: /^it ended while logging in: the host says: "This account is currently not available/,
    silent: /^Connection timed out during banner exchange$/,
    refusing: /^connect to host 127\.0\.0\.1 port 1: Connection refused$/,
    nowhere: /^Could not resolve hostname nowhere\.invalid/,
  }
  for (const [host, error] of Object.entries(errors)) t.regex(said.get(host)?.error ?? '', error, host)
  t.regex(said.get('asks')?.hint ?? '', /--ask-sudo-password/)
  t.deepEqual(
    outcomes.filter((each) => 'status' in each && each.status === 'UNREACHABLE').map(({ host }) => host),
    ['nowhere', 'refusing', 'silent'],
  )
  t.is(hosts.run('noexec', 'ls -A /usr/local/bin'), '', 'nothing is left')
  const elsewhere = await runRsm(['hosts', 'join', '--ssh', 'readonly,noexec', '--prefix', '/opt/rsm'], env)
  t.regex(
    elsewhere.stderr,
    /^noexec,readonly: FAILED: the host says: "the agent is installed, but was not started/m,
  )
  t.regex(hosts.run('readonly', 'stat -c %a,%U /opt/rsm/bin/rsm'), /^755,root$/m)
  const notRoot = await runRsm(['hosts', 'join', '--ssh', 'asks'], env)
  t.is(notRoot.exit, 1)
  t.regex(notRoot.stderr, /^asks: FAILED: the host says: "deploy is not root here: add --sudo/m)
})

whereFit('rsm hosts join --ssh refuses unknown and changed host keys', async (t) => {
  const { env, hosts, dataDir, enrollments } = await startWorld(t)
  await handOut({ dataDir }, executable, executableName)
  await Promise.all([hosts.start('web1', { isKnown: false }), hosts.start('web2', { isKnown: false })])
  const unknown = await runRsm(['hosts', 'join', '--ssh', 'web[1-2]'], env)
  t.is(unknown.exit, 1)
  t.regex(unknown.stderr, /^web\[1-2\]: UNREACHABLE: its host key is not known$/m)
  const advice = [...unknown.stderr.matchAll(/^ +(ssh-keyscan .*)$/gm)].map(([, line = '']) => line)
  t.is(advice.length, 2, 'one line for each port')
  t.deepEqual(await enrollments(), [], 'no token is left')
  execFileSync('sh', ['-c', advice[0] ?? ''], { stdio: 'ignore' })
  const known = await runRsm(['hosts', 'join', '--ssh', 'web1'], env)
  t.regex(known.stderr, unmanaged)
  const accepted = await runRsm(['hosts', 'join', '--ssh', 'web2', '--accept-new'], env)
  t.regex(accepted.stderr, unmanaged)

  const [first = ''] = readFileSync(hosts.knownHosts, 'utf8').split('\n')
  const [name = ''] = first.split(' ')
  const { port } = await hosts.start('web3')
  writeFileSync(hosts.knownHosts, first.replace(name, `[127.0.0.1]:${port}`))
  const changed = await runRsm(['hosts', 'join', '--ssh', 'web3', '--accept-new'], env)
  t.is(changed.exit, 255)
  t.regex(changed.stderr, /^web3: UNREACHABLE: host key changed: .*\n +once .*: (ssh-keygen -f .*)$/m)
  const [, remove = ''] = /: (ssh-keygen -f .*)$/m.exec(changed.stderr) ?? []
  execFileSync('sh', ['-c', remove], { stdio: 'ignore' })
  const forgotten = await runRsm(['hosts', 'join', '--ssh', 'web3', '--accept-new'], env)
  t.regex(forgotten.stderr, unmanaged)
})

whereFit('--ask-sudo-password asks once, and a wrong password is tried once', async (t) => {
  const { env, hosts, dataDir } = await startWorld(t)
  await handOut({ dataDir }, executable, executableName)
  const logged = (rule: string) =>
    `printf 'Defaults logfile=/var/log/sudo.log\\n${rule}\\n' > /etc/sudoers.d/deploy`
  const config = ['User deploy']
  await Promise.all([
    hosts.start('asks', { setup: logged('deploy ALL=(ALL) ALL'), config }),
    hosts.start('free', { setup: logged('deploy ALL=(ALL) NOPASSWD: ALL'), config }),
    hosts.start('root'),
  ])
  const home = temporaryDirectory(t)
  const typed = async (password: string) => {
    const pty = bashOnPty(t, `${rsm} hosts join --ssh asks,free,root --ask-sudo-password`, home, env)
    await pty.shows(/Password of sudo on 3 hosts: /)
    pty.type(`${password}\r`)
    return { exit: await pty.ended, shown: pty.shown.replaceAll('\r', '') }
  }
  const wrong = await typed('not the password')
  t.is(wrong.exit, 1)
  t.regex(wrong.shown, /asks: FAILED: sudo rejected the password$/m)
  t.regex(wrong.shown, /free,root: FAILED: the host says: "the agent is installed, but was not started"$/m)
  t.regex(hosts.run('asks', 'cat /var/log/sudo.log'), /: 1 incorrect password attempt/)
  const right = await typed(deployPassword)
  t.regex(
    right.shown,
    /asks,free,root: FAILED: the host says: "the agent is installed, but was not started"$/m,
  )
  t.is(hosts.run('asks', 'cat /usr/local/bin/rsm'), executable)
  t.notRegex(hosts.words() + right.shown, new RegExp(deployPassword))
})

/** First on a host's PATH: reads one kilobyte of a large file, and then waits for the end of its connection. */
const heldHead = `#!/usr/bin/python3
import os, select, sys
if int(sys.argv[2]) < 100000: os.execv('/usr/bin/head', ['head'] + sys.argv[1:])
os.write(1, os.read(0, 1000))
ended = select.poll()
ended.register(0, select.POLLRDHUP)
ended.poll()
`

whereFit('a copy cut by a cancel or by a dying host leaves nothing on the host', async (t) => {
  const { env, hosts, dataDir } = await startWorld(t)
  await handOut({ dataDir }, `${executable}# ${'x'.repeat(300_000)}\n`, executableName)
  const setup = `cat > /usr/local/bin/head <<'END'\n${heldHead}END\nchmod 755 /usr/local/bin/head`
  const [, dying] = await Promise.all([hosts.start('web1', { setup }), hosts.start('web2', { setup })])
  const joining = startRsm(['hosts', 'join', '--ssh', 'web[1-2]', '--json'], env)
  const files = (name: string) => hosts.run(name, 'ls -A /usr/local/bin').split('\n')
  for (const name of ['web1', 'web2'])
    await until('it is copied', () => files(name).some((file) => file.startsWith('.rsm.')))
  await dying.stop()
  await joining.shows('rsm: web2: FAILED: it ended while copying: ')
  joining.child.kill('SIGTERM')
  const { exit, stdout } = await joining.done
  t.is(exit, 143)
  const said = (JSON.parse(stdout) as { hosts: { host: string; status: string }[] }).hosts
  t.deepEqual(
    said.map(({ host, status }) => `${host} ${status}`),
    ['web1 CANCELLED', 'web2 FAILED'],
  )
  await until('nothing is left', () => !files('web1').some((file) => file.startsWith('.rsm.')))
  t.false(files('web1').includes('rsm'))
})

whereFit('Ctrl-C ends ssh to all hosts, and reports hosts that have not joined as CANCELLED', async (t) => {
  const { env, hosts, dataDir, enrollments } = await startWorld(t)
  await handOut({ dataDir }, executable, executableName)
  await hosts.start('slow', { setup: `printf 'sleep 600\\n' > /root/.bashrc` })
  const joining = startRsm(['hosts', 'join', '--ssh', 'slow,waits', '-f', '1', '--json'], env)
  await until('ssh runs', () => hosts.words().includes('slow'))
  const running = () =>
    spawnSync('pgrep', ['-f', `^\\S*ssh .*-F ${hosts.bin.replace(/bin$/, 'config')}`], { encoding: 'utf8' })
      .stdout
  await until('its process exists', () => running() !== '')
  joining.child.kill('SIGINT')
  const { exit, stdout } = await joining.done
  t.is(exit, 130)
  t.deepEqual(
    (JSON.parse(stdout) as { hosts: { host: string; status: string }[] }).hosts.map(
      ({ host, status }) => `${host} ${status}`,
    ),
    ['slow CANCELLED', 'waits CANCELLED'],
  )
  t.is(running(), '')
  t.notRegex(hosts.words(), /waits/, 'one host at a time')
  t.deepEqual(await enrollments(), [])
})

test('rsm hosts join --ssh validates everything before it contacts a host', async (t) => {
  const server = await startTestServer(t)
  const run = commandLine(t, server)
  const refused = async (words: readonly string[], exit: number, message: RegExp, env = {}) => {
    const ran = await run(['hosts', 'join', ...words], { env })
    t.is(ran.exit, exit, ran.stderr)
    t.regex(ran.stderr, message)
  }
  await refused(['--sudo'], 2, /--sudo goes with --ssh/)
  await refused(['-J', 'bastion', '--ssh-user', 'x'], 2, /--ssh-user goes with --ssh/)
  await refused(['--ssh', 'web1', '--replace', 'web1'], 2, /exclude each other/)
  await refused(['--ssh', 'web1', '--sudo', '--ask-sudo-password'], 2, /exclude each other/)
  await refused(['--ssh', 'web[1-'], 2, /--ssh: .*bracket is not closed/)
  await refused(['--ssh', '@web'], 2, /--ssh: /)
  await refused(['--ssh', 'web1'], 5, /has no executable to copy.*\n.*rsm server releases add/)
  await refused(['--ssh', 'web1'], 6, /there is no ssh on the PATH\n.*openssh-client/, {
    PATH: temporaryDirectory(t),
  })
  await handOut(server, executable, executableName)
  const ann = { username: 'ann', password: 'a long password' }
  await server.data('POST', '/api/users', { ...ann, role: 'OPERATOR' })
  const { token } = await server.data('POST', '/api/auth/login', ann)
  await refused(['--ssh', 'web1'], 3, /ADMIN/, { RSM_TOKEN: token })
})
