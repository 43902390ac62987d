import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

const program = '/usr/sbin/sshd'

/** A private sshd on loopback with a new key. */
export interface Sshd {
  /** Options for `ssh` and `scp`: every hostname leads to this sshd. */
  options: string[]
  stop(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}

async function isUp(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const up = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return up
}

/** Null if the program is missing. */
export async function startSshd(): Promise<Sshd | null> {
  if (!existsSync(program)) return null
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-ssh-'))
  const file = (name: string) => join(directory, name)
  for (const name of ['host', 'user'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file(name)])
  await writeFile(file('authorized'), execFileSync('cat', [file('user.pub')]), { mode: 0o600 })
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })
  const port = await freePort()
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
    'Subsystem sftp internal-sftp',
  ]
  await writeFile(file('config'), `${settings.join('\n')}\n`)
  const server = spawn(program, ['-D', '-f', file('config')], { stdio: 'ignore' })
  for (let attempt = 0; attempt < 50 && !(await isUp(port)); attempt++) await setTimeout(100)
  const settled = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR']
  return {
    options: [
      '-i',
      file('user'),
      ...['HostName=127.0.0.1', `Port=${port}`, ...settled].flatMap((one) => ['-o', one]),
    ],
    async stop() {
      server.kill('SIGTERM')
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
      await rm(directory, { recursive: true, force: true })
    },
  }
}
