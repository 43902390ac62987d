import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import { createLog } from '../../../src/server/log.ts'
import { openTls } from '../../../src/server/tls/tls.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { copying } from '../../helpers/audit/copying.ts'
import { until } from '../../helpers/until.ts'

/** A collector that takes frames of RFC 6587 by their length. */
async function collector(t: ExecutionContext, server: Server, port = 0) {
  const messages: string[] = []
  const sockets = new Set<Socket>()
  const take = (socket: Socket) => {
    sockets.add(socket)
    let rest = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (data) => {
      rest = Buffer.concat([rest, data])
      for (;;) {
        const space = rest.indexOf(' ')
        const length = Number(rest.subarray(0, Math.max(space, 0)).toString())
        if (space < 1 || rest.length < space + 1 + length) return
        messages.push(rest.subarray(space + 1, space + 1 + length).toString('utf8'))
        rest = rest.subarray(space + 1 + length)
      }
    })
  }
  server.on('setSecureContext' in server ? 'secureConnection' : 'connection', take)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const stop = async () => {
    cut()
    server.close()
    await once(server, 'close')
  }
  t.teardown(() => {
    cut()
    server.close()
  })
  return { messages, cut, stop, port: (server.address() as AddressInfo).port }
}

const bodies = (messages: readonly string[]) => messages.map((message) => message.slice(message.indexOf('{')))
const message5424 = /^<(86|84)>1 2\d{3}-\d\d-\d\dT[\d:.]+Z \S+ rsm-audit \d+ \S{1,32} - \{"id":/

test('over TCP each entry is one message of RFC 5424 with its length before it, its line as it is stored', async (t) => {
  const { append, copyTo, upToDate, lines, log } = await copying(t)
  await append(300)
  await log.append({
    actor: { type: 'anonymous', id: null, name: null, tokenId: null },
    ip: '::1',
    action: 'user.login',
    object: { type: 'user', id: null, name: 'ünïcode ] " \\' },
    outcome: 'REFUSED',
    detail: {},
  })
  const { messages, port } = await collector(t, createServer())
  await upToDate(copyTo(`syslog+tcp://127.0.0.1:${port}`))
  await until('all have come', () => messages.length === 302)
  for (const message of messages) t.regex(message, message5424)
  t.deepEqual(bodies(messages), await lines())
  t.regex(messages[1] ?? '', /^<86>1 \S+ \S+ rsm-audit \d+ step\.0 - /)
  t.regex(messages.at(-1) ?? '', /^<84>1 \S+ \S+ rsm-audit \d+ user\.login - /)
})

test('a collector that goes and comes back has each entry at least once, and the log says which may come twice', async (t) => {
  const { append, copyTo, upToDate, lines, said } = await copying(t)
  const first = await collector(t, createServer())
  const copy = copyTo(`syslog+tcp://127.0.0.1:${first.port}`)
  await append(20)
  await upToDate(copy)
  await first.stop()
  await append(20)
  await until('it is missed', () => copy.status.error !== null)
  t.regex(copy.status.error ?? '', /ECONNREFUSED/)
  const second = await collector(t, createServer(), first.port)
  await upToDate(copy)
  await until('all have come', () => second.messages.length >= 41)
  // Nothing acknowledges syslog: what the first one has taken comes again.
  t.deepEqual(bodies(second.messages), await lines())
  t.true(said.some((message) => /these entries are sent again, some may come twice/.test(message)))
  second.cut()
  await append(1)
  await upToDate(copy)
  const all = await lines()
  await until('the last has come', () => bodies(second.messages).at(-1) === all.at(-1))
})

test('after a restart in order a collector gets what is new only', async (t) => {
  const { append, copyTo, upToDate, lines } = await copying(t)
  const { messages, port } = await collector(t, createServer())
  const target = `syslog+tcp://127.0.0.1:${port}`
  const copy = copyTo(target)
  await append(20)
  await upToDate(copy)
  await append(5)
  await copy.close()
  await append(5)
  const next = copyTo(target)
  await upToDate(next)
  await until('all have come', () => messages.length >= 31)
  t.deepEqual(bodies(messages), await lines())
})

test('over TLS the collector has to show a certificate that is trusted', async (t) => {
  const { append, copyTo, upToDate, lines } = await copying(t)
  const directory = temporaryDirectory(t)
  await openTls({ selfSigned: true }, { directory, host: '127.0.0.1', log: createLog('ERROR') })
  const [cert, key] = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(directory, name)))
  const { messages, port } = await collector(t, createTlsServer({ cert, key } as never))
  await append(3)
  const strange = copyTo(`syslog+tls://127.0.0.1:${port}`)
  await until('it is refused', () => strange.status.error !== null)
  t.regex(strange.status.error ?? '', /self.signed certificate/)
  await strange.close()
  t.deepEqual(messages, [])
  await upToDate(copyTo(`syslog+tls://127.0.0.1:${port}`, [String(cert)]))
  await until('all have come', () => messages.length === 4)
  t.deepEqual(bodies(messages), await lines())
})

const receiver = `import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    sys.stdout.buffer.write(s.recv(1 << 20) + b'\\n')
    sys.stdout.flush()
`
const isMissing = ['python3', 'logger'].filter((name) => spawnSync(name, ['--version']).error !== undefined)
const local = isMissing.length > 0 ? test.skip : test

local(
  'the syslog of the machine gets each entry through logger; one that is away is waited for',
  async (t) => {
    const { append, copyTo, upToDate, lines } = await copying(t)
    const socket = join(temporaryDirectory(t), 'log')
    await append(2)
    const copy = copyTo(`syslog:${socket}`)
    await until('it is missed', () => copy.status.error !== null)
    t.regex(copy.status.error ?? '', /No such file or directory/)
    const child = spawn('python3', ['-c', receiver, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    let got = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (got += text))
    await until('it listens', () => existsSync(socket))
    await append(50)
    await upToDate(copy)
    await until('all have come', () => got.trimEnd().split('\n').length === 53)
    const messages = got.trimEnd().split('\n')
    for (const message of messages) t.regex(message, /^<86>\w{3} [ \d]\d [\d:]{8} rsm-audit: \{"id":/)
    t.deepEqual(bodies(messages), await lines())
  },
)
