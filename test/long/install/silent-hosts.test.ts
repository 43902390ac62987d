import { once } from 'node:events'
import { createReadStream, writeFileSync } from 'node:fs'
import { createServer, connect as dial, type Server } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import test, { type ExecutionContext } from 'ava'
import type { Connection as Accepted, ServerChannel, Server as SshServer } from 'ssh2'
import ssh2 from 'ssh2'
import { type Connection, connect } from '../../../src/server/agents/installs/connection.ts'
import { InstallOutput } from '../../../src/server/agents/installs/output.ts'
import { type Ended, type Installation, install, type Patience } from '../../../src/ssh/conversation.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

/** Milliseconds: a timeout that a test waits for, and one that never expires. */
const short = 300
const long = 60_000
const generous: Patience = { start: long, inspect: long, piece: long, place: long, install: long }

async function listen(t: ExecutionContext, server: Server | SshServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as { port: number }).port
}

function access(port: number) {
  return { ip: '127.0.0.1', port, username: 'root', login: { password: 'p' }, password: 'p' }
}

async function login(t: ExecutionContext, port: number, within: number): Promise<Connection> {
  const { signal } = new AbortController()
  const connection = await connect({ access: access(port), judge: async () => null, within, signal })
  t.teardown(() => connection.close())
  return connection
}

/** An SSH server that accepts every login, and then calls `then`. */
async function sshServer(t: ExecutionContext, then: (client: Accepted) => void): Promise<number> {
  const { private: key } = ssh2.utils.generateKeyPairSync('ed25519')
  const server = new ssh2.Server({ hostKeys: [key] }, (client) => {
    client.on('authentication', (asked) => asked.accept())
    client.on('error', () => undefined)
    t.teardown(() => client.end())
    then(client)
  })
  return listen(t, server)
}

/** Calls `does` with the channel and the mark of each command. */
const onCommand = (does: (channel: ServerChannel, mark: string) => void) => (client: Accepted) =>
  client.on('session', (accept) =>
    accept().on('exec', (accepted, _reject, { command }) =>
      does(accepted(), /--over-ssh (\w+)/.exec(command)?.[1] ?? ''),
    ),
  )

function begin(connection: Connection, patience: Patience, more: Partial<Installation> = {}): Promise<Ended> {
  const { signal } = new AbortController()
  const unexpected = () => Promise.reject(new Error('not asked for here'))
  return install({
    open: (line) => connection.run(line, patience.start),
    sudo: 'none',
    sudoPassword: undefined,
    options: [],
    patience,
    signal,
    onLine: () => undefined,
    executableFor: unexpected,
    joinString: unexpected,
    ...more,
  })
}

test('a login times out on a port that accepts the connection but sends nothing', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    t.teardown(() => socket.destroy())
  })
  const port = await listen(t, server)
  await t.throwsAsync(login(t, port, short), {
    message: `login to 127.0.0.1:${port} timed out after 0.3 s`,
  })
})

test('the login timeout covers the attempts with all types of host keys', async (t) => {
  // Silent from the second connection on.
  let connections = 0
  const real = await sshServer(t, () => undefined)
  const relay = createServer((socket) => {
    socket.on('error', () => undefined)
    t.teardown(() => socket.destroy())
    if (connections++ > 0) return
    const behind = dial(real, '127.0.0.1')
    behind.on('error', () => undefined)
    socket.pipe(behind).pipe(socket)
  })
  const port = await listen(t, relay)
  const { signal } = new AbortController()
  const judge = async () => 'host key changed'
  await t.throwsAsync(connect({ access: access(port), judge, within: 2000, signal }), {
    message: /timed out after 2 s$/,
  })
  t.true(connections > 1, String(connections))
})

test('an installation times out on a host that accepts the login but starts no command', async (t) => {
  const port = await sshServer(t, (client) => {
    // Never answers the request for a session.
    client.on('session', () => undefined)
  })
  const connection = await login(t, port, long)
  await t.throwsAsync(begin(connection, { ...generous, start: short }), {
    message: `127.0.0.1:${port} accepted the login but started no command within 0.3 s`,
  })
})

test('an installation times out on a host whose shell does not reach the installer', async (t) => {
  const port = await sshServer(
    t,
    onCommand((channel) => channel.write('Welcome!\n')),
  )
  const connection = await login(t, port, long)
  await t.throwsAsync(begin(connection, { ...generous, start: short }), {
    message: 'no output from the installer for 0.3 s',
  })
})

test('an installation times out on a host that reads nothing of the copy', async (t) => {
  const port = await sshServer(
    t,
    onCommand((channel, mark) => {
      // The window closes, because nothing is read.
      channel.pause()
      channel.write(`${mark} shell\n${mark} host x64 - -\n`)
    }),
  )
  const file = join(temporaryDirectory(t), 'executable')
  const size = 16 * 1024 * 1024
  writeFileSync(file, Buffer.alloc(size))
  const connection = await login(t, port, long)
  const executableFor = async () => ({ sha256: 'sum', size, open: () => createReadStream(file) })
  await t.throwsAsync(begin(connection, { ...generous, piece: short }, { executableFor }), {
    message: 'the host accepted no data for 0.3 s',
  })
})

test('a JSON error of rsm on the host appears as plain text in the output, and is the reason', async (t) => {
  const failure = { error: { exit: 6, message: 'no systemd runs here', hint: 'run this:\nrsm agent run' } }
  const port = await sshServer(
    t,
    onCommand((channel, mark) => {
      channel.write(`${mark} shell\n${mark} host x64 sum -\n${mark} ready\n${mark} result\n`)
      channel.stderr.write(`rsm: warning\n${JSON.stringify(failure)}\n`)
      channel.exit(6)
      channel.end()
    }),
  )
  const connection = await login(t, port, long)
  const said: string[] = []
  const output = new InstallOutput((stream, text) => said.push(`${stream} ${text}`), 'none')
  const executableFor = async () => ({ sha256: 'sum', size: 0, open: () => Readable.from([]) })
  const ended = await begin(connection, generous, {
    onLine: (stream, line) => output.heard(stream, line),
    executableFor,
    joinString: async () => 'rsm-join:',
  })
  t.like(ended, { exit: 6, result: '' })
  t.is(output.reason, 'no systemd runs here')
  t.deepEqual(said, [
    'stderr rsm: warning\n',
    'stderr rsm: no systemd runs here\n     run this:\n     rsm agent run\n',
  ])
})
