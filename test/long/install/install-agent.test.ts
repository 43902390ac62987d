import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import { runRsm } from '../../fixtures/rsm.ts'
import { deployPassword, hasSshHosts, managed, sshHosts } from '../../helpers/programs/ssh-hosts.ts'
import { handOut } from '../../helpers/servers/hand-out.ts'
import { executable, executableName, startSelfSigned } from '../../helpers/servers/self-signed.ts'

// Skipped (2026-11-22) without hosts behind their own sshd, which require root, mounts, OpenSSH and sudo.
const whereFit = hasSshHosts ? test : test.skip

const byPassword = ['PasswordAuthentication yes']

/** A self-signed server of the real binary, a client logged in there, and hosts behind sshd. */
async function startWorld(t: ExecutionContext) {
  const hosts = sshHosts(t)
  const { env, dataDir, url, server, start } = await startSelfSigned(t)
  const rsm = (argv: readonly string[], input?: string) => runRsm(argv, env, input)
  const json = async <T>(argv: readonly string[]) => JSON.parse((await rsm([...argv, '--json'])).stdout) as T
  return { env, hosts, dataDir, url, server, start, rsm, json }
}

type World = Awaited<ReturnType<typeof startWorld>>

/** Adds a host with the credentials of the fixture. */
async function add(
  { rsm, hosts }: World,
  t: ExecutionContext,
  name: string,
  port: number,
  user: string,
  login: 'key' | 'password',
) {
  const how = login === 'key' ? ['--private-key', hosts.key] : ['--password-stdin']
  const argv = [
    'hosts',
    'add',
    name,
    '--ip',
    '127.0.0.1',
    '--ssh-port',
    String(port),
    '--ssh-user',
    user,
    ...how,
  ]
  const added = await rsm(argv, login === 'key' ? '' : deployPassword)
  t.is(added.exit, 0, added.stderr)
}

const hostKeyOf = (directory: string) =>
  execFileSync('ssh-keygen', ['-l', '-f', directory], { encoding: 'utf8' }).split(' ')[1] ?? ''

whereFit(
  'the server installs agents by key and by password with sudo, and each joins as its existing host',
  async (t) => {
    const world = await startWorld(t)
    const { hosts, rsm, json, dataDir } = world
    await handOut({ dataDir }, executable, executableName)
    const [web1, app1] = await Promise.all([
      hosts.start('web1', { setup: managed }),
      hosts.start('app1', {
        setup: `${managed}\necho "deploy ALL=(ALL) ALL" > /etc/sudoers.d/deploy`,
        sshd: byPassword,
      }),
    ])
    await add(world, t, 'web1', web1.port, 'root', 'key')
    await add(world, t, 'app1', app1.port, 'deploy', 'password')
    const ran = await rsm(['hosts', 'install', '-w', 'web1,app1', '--sudo', '--forget-credentials'])
    t.is(ran.exit, 0, ran.stdout + ran.stderr)
    t.regex(
      ran.stdout,
      /^web1: rsm: logged in to 127\.0\.0\.1:\d+ as root; its host key is pinned from now on: SHA256:/m,
    )
    t.regex(ran.stdout, /^app1: rsm: copying rsm-linux-\w+, 1 MB$/m)
    t.regex(ran.stdout, /^app1: .*runs and is linked: this is host app1 \(@id:2\)/m)
    t.notRegex(ran.stdout + ran.stderr, new RegExp(`rsm_enr_|rsm-join:|${deployPassword}`))
    const task = await json<Task>(['tasks', 'show', 'latest'])
    t.like(task, { type: 'INSTALL', status: 'SUCCESS', firstLine: 'install the agent', timeout: 900 })
    t.deepEqual(
      task.results.map(({ hostname, status, exitCode, error }) => [hostname, status, exitCode, error]),
      [
        ['app1', 'SUCCESS', 0, null],
        ['web1', 'SUCCESS', 0, null],
      ],
    )
    const executed = await rsm(['exec', '-a', '-N', '-b', '--', 'id -un'])
    t.is(executed.stdout, '---------------\napp1,web1 (2)\n---------------\nroot\n', executed.stderr)
    for (const [name, id] of [
      ['web1', 1],
      ['app1', 2],
    ] as const) {
      const host = await json<Host>(['hosts', 'show', name])
      t.like(host, { id, authType: 'NONE' })
      t.is(host.hostKey, hostKeyOf(join(hosts.directory, name, 'host.pub')))
    }
    t.is((await rsm(['hosts', 'list', '-o', 'names'])).stdout, 'app1\nweb1\n')
    const again = await rsm(['hosts', 'install', 'web1'])
    t.is(again.exit, 255)
    t.regex(
      again.stderr,
      /web1: FAILED, exit 255: web1 has no SSH credentials: rsm hosts edit web1 --ssh-user USER/,
    )
  },
)

whereFit(
  'the result of a host says why its installation failed, and a host with another key is sent nothing',
  async (t) => {
    const world = await startWorld(t)
    const { hosts, rsm, json, dataDir, env } = world
    const sshd = [...byPassword, 'LogLevel VERBOSE', 'HostKey /etc/ssh/rsa_key']
    const setup = "ssh-keygen -q -t rsa -N '' -f /etc/ssh/rsa_key"
    const [web1, web2, web3] = await Promise.all(
      ['web1', 'web2', 'web3'].map((name) => hosts.start(name, { sshd, setup })),
    )
    const chatty = await hosts.start('chatty', { sshd: ["ForceCommand yes '' | head -n 200000"] })
    await add(world, t, 'chatty', chatty.port, 'root', 'key')
    if (!web1 || !web2 || !web3) return t.fail()
    await add(world, t, 'web1', web1.port, 'deploy', 'password')
    await add(world, t, 'web2', web2.port, 'deploy', 'password')
    await add(world, t, 'web3', web3.port, 'deploy', 'password')
    await add(world, t, 'refusing', 1, 'root', 'key')
    await rsm(['hosts', 'edit', 'web1', '--password-stdin'], 'another password')
    const other = `SHA256:${'A'.repeat(43)}`
    await rsm(['hosts', 'edit', 'web2', '--host-key', other])
    // A key of another type than the one that sshd offers first.
    const rsa = hosts.run('web3', 'ssh-keygen -l -f /etc/ssh/rsa_key.pub').split(' ')[1] ?? ''
    await rsm(['hosts', 'edit', 'web3', '--host-key', rsa])
    const bad = join(env['HOME'] ?? '', 'bad-key')
    writeFileSync(bad, 'no key')
    await rsm(['hosts', 'add', 'badkey', '--ip', '127.0.0.1', '--ssh-user', 'root', '--private-key', bad])
    await rsm(['hosts', 'add', 'nothing', '--ip', '127.0.0.1'])
    const errorsOf = async (argv: readonly string[]) => {
      const task = await json<Task>(['hosts', 'install', ...argv])
      t.like(task, { type: 'INSTALL', status: 'FAILED' })
      return Object.fromEntries(
        task.results.map(({ hostname, exitCode, error }) => [hostname, `${exitCode} ${error}`]),
      )
    }
    const errors = await errorsOf(['-a'])
    for (const [name, said] of Object.entries({
      web1: /^255 127\.0\.0\.1:\d+ rejected the stored password of deploy$/,
      web2: /^255 host key changed: SHA256:A{43} is pinned, and SHA256:\S{43} was shown; nothing was sent\./,
      web3: /^1 deploy is not root here: add --sudo/,
      refusing: /^255 127\.0\.0\.1:1 refuses connections: does sshd run there\?$/,
      badkey: /^255 .*the stored key cannot be used: /,
      chatty: /^1 the host sent too much output$/,
      nothing: /^255 nothing has no SSH credentials: rsm hosts edit nothing --ssh-user USER/,
    }))
      t.regex(errors[name] ?? '', said)
    t.regex(web1.log(), /Failed password for deploy/)
    t.notRegex(web2.log(), /Failed|Accepted|user deploy/)
    t.is((await json<Host>(['hosts', 'show', 'web2'])).hostKey, other)
    const asked = await errorsOf(['web3', '--sudo'])
    t.regex(asked['web3'] ?? '', /deploy is not in the sudoers file/)
    hosts.run('web3', 'echo "deploy ALL=(ALL) ALL" > /etc/sudoers.d/deploy')
    t.regex(
      (await errorsOf(['web3', '--sudo']))['web3'] ?? '',
      /^1 this server has no rsm-linux-\w+; on its machine: rsm server releases add/,
    )
    // A wrong password of sudo, because the login is by key.
    await rsm(['hosts', 'edit', 'web3', '--private-key', hosts.key, '--password-stdin'], 'another password')
    t.is((await errorsOf(['web3', '--sudo']))['web3'], '1 sudo rejected the stored password')
    await handOut({ dataDir }, executable, executableName)
    await rsm(['hosts', 'edit', 'web3', '--private-key', hosts.key, '--password-stdin'], deployPassword)
    t.regex(
      (await errorsOf(['web3', '--sudo']))['web3'] ?? '',
      /^6 the agent is installed, but was not started/,
    )
  },
)

whereFit(
  'an installation can be cancelled, and one cut by a killed server is LOST and can be retried',
  async (t) => {
    const world = await startWorld(t)
    const { hosts, rsm, json, dataDir, server, start, url } = world
    await handOut({ dataDir }, executable, executableName)
    const { port } = await hosts.start('web1', { setup: `${managed}\ntouch /run/hold` })
    await add(world, t, 'web1', port, 'root', 'key')
    const begun = async (argv: readonly string[]) => {
      hosts.run('web1', 'rm -rf /etc/rsm')
      const taskId = (await rsm([...argv, '--detach'])).stdout.trim()
      hosts.run(
        'web1',
        'until [ -e /etc/systemd/system/rsm-agent.service ] && [ -e /etc/rsm/agent.env ]; do sleep 0.1; done',
      )
      return taskId
    }
    const cancelled = await begun(['hosts', 'install', 'web1'])
    await rsm(['tasks', 'cancel', cancelled])
    t.is((await rsm(['tasks', 'wait', cancelled])).exit, 130)
    t.like((await json<Task>(['tasks', 'show', cancelled])).results[0], { status: 'CANCELLED' })
    const cut = await begun(['tasks', 'retry', cancelled, '--yes'])
    server.child.kill('SIGKILL')
    await server.done
    await start(new URL(url).port)
    t.is((await rsm(['tasks', 'wait', cut])).exit, 255)
    const { results } = await json<Task>(['tasks', 'show', cut])
    t.is(results[0]?.status, 'LOST')
    t.regex(results[0]?.error ?? '', /^the server stopped during the installation/)
    hosts.run('web1', 'rm /run/hold')
    const retried = await rsm(['tasks', 'retry', cut, '--yes'])
    t.is(retried.exit, 0, retried.stdout + retried.stderr)
    t.is((await rsm(['exec', '-w', 'web1', '-N', '--', 'hostname'])).stdout, 'web1\n')
    t.is((await rsm(['hosts', 'list', '-o', 'names'])).stdout, 'web1\n')
  },
)

whereFit('an installation is SUCCESS only if the installed agent links, not an existing one', async (t) => {
  const world = await startWorld(t)
  const { hosts, rsm, json, dataDir } = world
  await handOut({ dataDir }, executable, executableName)
  const [web1, web2] = await Promise.all(
    ['web1', 'web2'].map((name) => hosts.start(name, { setup: managed })),
  )
  if (!web1 || !web2) return t.fail()
  await add(world, t, 'web1', web1.port, 'root', 'key')
  await add(world, t, 'web2', web2.port, 'root', 'key')
  const first = await rsm(['hosts', 'install', '-a'])
  t.is(first.exit, 0, first.stdout + first.stderr)
  // Its agent joined earlier, so the token is not needed and is removed.
  const again = await rsm(['hosts', 'install', 'web1'])
  t.is(again.exit, 0, again.stdout + again.stderr)
  const { content } = await json<{ content: readonly { uses: number }[] }>(['enrollments', 'list'])
  t.deepEqual(
    content.map(({ uses }) => uses),
    [1, 1],
  )

  const errorOf = async (name: string) => {
    const task = await json<Task>(['hosts', 'install', name])
    return `${task.results[0]?.status} ${task.results[0]?.error}`
  }
  const edit = [
    'hosts',
    'edit',
    'web1',
    '--ssh-user',
    'root',
    '--private-key',
    hosts.key,
    '--host-key',
    '',
    '--ssh-port',
  ]
  t.is((await rsm([...edit, String(web2.port)])).exit, 0)
  t.is(
    await errorOf('web1'),
    `FAILED 127.0.0.1:${web2.port} is not web1: its agent belongs to web2 (@id:2). ` +
      'Fix the address: rsm hosts edit web1 --ip ADDRESS',
  )
  t.is((await rsm([...edit, String(web1.port)])).exit, 0)
  // Installers without an agent, while the host's previous agent is linked.
  const linked = { hostId: 1, hostname: 'web1', agentId: 'agt-other' }
  for (const [says, error] of [
    ['', `rsm agent install on 127.0.0.1:${web1.port} does not report which agent is linked`],
    [
      JSON.stringify({ linked }),
      `the agent on 127.0.0.1:${web1.port} is not the one that web1 has now; install it again`,
    ],
  ]) {
    await handOut({ dataDir }, `#!/bin/sh\necho '${says}'\n`, executableName)
    t.is(await errorOf('web1'), `FAILED ${error}`)
  }
  const executed = await rsm(['exec', '-a', '-N', '-b', '--', 'hostname'])
  t.regex(executed.stdout, /^web1$/m)
  t.regex(executed.stdout, /^web2$/m)
})
