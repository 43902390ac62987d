import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { wholeProcess } from '../measure.ts'

const sshd = '/usr/sbin/sshd'
const port = 20022

/** A loopback sshd of its own with a fresh key, and pdsh over it. Null where either program is missing. */
export async function startPdsh(
  hosts: number,
): Promise<{ run(command: string): Promise<number>; stop(): Promise<void> } | null> {
  if (!existsSync(sshd) || spawnSync('pdsh', ['-V']).status !== 0) return null
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-ssh-'))
  const file = (name: string) => join(directory, name)
  for (const name of ['host', 'user'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file(name)])
  await writeFile(file('authorized'), execFileSync('cat', [file('user.pub')]), { mode: 0o600 })
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })
  const settings = [
    `HostKey ${file('host')}`,
    `AuthorizedKeysFile ${file('authorized')}`,
    'PermitRootLogin prohibit-password',
    'StrictModes no',
    'UsePAM no',
    'MaxStartups 1000',
    'MaxSessions 1000',
    `ListenAddress 127.0.0.1:${port}`,
    `PidFile ${file('pid')}`,
  ]
  await writeFile(file('config'), `${settings.join('\n')}\n`)
  const server = spawn(sshd, ['-D', '-f', file('config')], { stdio: 'ignore' })
  for (let attempt = 0; attempt < 50; attempt++) {
    const socket = connect(port, '127.0.0.1')
    const up = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (up) break
    await setTimeout(100)
  }
  // Every name leads to the one sshd on loopback.
  const options = `-o HostName=127.0.0.1 -p ${port} -i ${file('user')} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR`
  const env = { ...process.env, PDSH_SSH_ARGS_APPEND: options }
  return {
    run: (command) =>
      wholeProcess(
        'pdsh',
        ['-S', '-R', 'ssh', '-l', userInfo().username, '-w', `host[1-${hosts}]`, command],
        env,
      ),
    async stop() {
      server.kill('SIGTERM')
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
      await rm(directory, { recursive: true, force: true })
    },
  }
}
