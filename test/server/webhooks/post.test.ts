import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, isIP } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { generate } from 'selfsigned'
import { proxySetting } from '../../../src/net/proxy.ts'
import { createJudge } from '../../../src/server/webhooks/judge.ts'
import { createPost } from '../../../src/server/webhooks/post.ts'
import { newSecret, signed } from '../../../src/server/webhooks/sender.ts'
import { isSigned, startRawReceiver, startReceiver } from '../../helpers/servers/webhook-receiver.ts'
import { until } from '../../helpers/until.ts'

const body = JSON.stringify({
  type: 'task.failed',
  timestamp: '2026-03-02T09:00:00.000Z',
  data: { text: 'ä' },
})
const running = new AbortController().signal

function posting(t: ExecutionContext) {
  const post = createPost(createJudge({ insecure: true, allow: ['127.0.0.0/8'] }))
  t.teardown(async () => post.close())
  return (url: string, headers: Record<string, string> = {}, stop = running) =>
    post({ url, headers, body }, stop)
}

test('a delivery arrives exactly as it was signed', async (t) => {
  const receiver = await startReceiver(t)
  const secret = newSecret()
  const headers = signed(secret, 'msg_1', Date.now(), body)
  t.deepEqual(await posting(t)(receiver.url, headers), { status: 204, error: null })
  const [got] = await receiver.first(1)
  t.true(got !== undefined && isSigned(secret, got))
  t.is(got?.text, body)
  t.is(got?.headers['webhook-id'], 'msg_1')
  t.is(got?.headers['content-type'], 'application/json')
})

test('S14 any answer but a 2xx is a failure, and redirects are not followed', async (t) => {
  const receiver = await startReceiver(t)
  const target = await startReceiver(t)
  const post = posting(t)
  for (const status of [199 + 1, 202, 299]) {
    receiver.answers(status)
    t.deepEqual(await post(receiver.url), { status, error: null })
  }
  for (const status of [400, 404, 410, 500, 503]) {
    receiver.answers(status)
    t.deepEqual(await post(receiver.url), { status, error: `the receiver answered ${status}` })
  }
  for (const status of [301, 302, 303, 307, 308]) {
    receiver.answers((response) => response.writeHead(status, { location: target.url }).end())
    const error = `the receiver answered ${status}: redirects are not followed`
    t.deepEqual(await post(receiver.url), { status, error })
  }
  t.is(target.got.length, 0)
})

test('S14 only the beginning of an endless answer is read, and its status counts', async (t) => {
  const sizes: number[] = []
  const chunk = Buffer.alloc(65_536, 'x')
  const url = await startRawReceiver(t, (socket) => {
    let written = 0
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n')
      const fill = () => {
        while (!socket.destroyed && socket.write(chunk)) written += chunk.length
      }
      socket.on('drain', fill)
      fill()
    })
    socket.once('close', () => sizes.push(written))
  })
  const closed = posting(t)(url)
  t.deepEqual(await closed, { status: 200, error: null })
  await until('it is closed', () => sizes.length > 0)
  // The buffers of a socket hold a small part of the 10 GB.
  t.true((sizes[0] ?? 0) < 64 * 1024 * 1024, `${sizes[0]} bytes`)
})

test('a receiver that disconnects, refuses or sends garbage is a failure with that reason', async (t) => {
  const post = posting(t)
  const cut = await startRawReceiver(t, (socket) => socket.once('data', () => socket.destroy()))
  t.regex((await post(cut))?.error ?? '', /socket hang up|ECONNRESET/)
  const nonsense = await startRawReceiver(t, (socket) =>
    socket.once('data', () => socket.end('SSH-2.0-x\r\n\r\n')),
  )
  t.regex((await post(nonsense))?.error ?? '', /Parse Error/)
  const receiver = await startReceiver(t)
  await receiver.close()
  t.regex((await post(receiver.url))?.error ?? '', /ECONNREFUSED/)
})

test('S14 the address is checked at each attempt, so a name with a refused address gets no connection', async (t) => {
  const receiver = await startReceiver(t)
  const { port } = new URL(receiver.url)
  const strict = createPost(createJudge({ insecure: true, allow: ['10.0.0.0/8'] }))
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]']) {
    const outcome = await strict({ url: `http://${host}:${port}/`, headers: {}, body }, running)
    t.regex(outcome?.error ?? '', /^the URL leads to \S+, which is not a public address/, host)
  }
  t.is(receiver.got.length, 0)
  const unknown = await strict({ url: 'https://no-such-name.invalid/', headers: {}, body }, running)
  t.regex(unknown?.error ?? '', /no-such-name\.invalid cannot be looked up/)
  strict.close()
})

test('a failed delivery explains that webhooks do not use the proxy of the environment', async (t) => {
  const judge = createJudge({ allow: ['127.0.0.0/8'] })
  const sent = async (url: string, environment: Record<string, string>) => {
    const post = createPost(judge, undefined, (at) => proxySetting(at, environment)?.[0])
    t.teardown(() => post.close())
    return (await post({ url, headers: {}, body }, running))?.error ?? ''
  }
  const proxy = 'http://ann:secret@127.0.0.1:9'
  const note = /; webhooks do not use https_proxy: let the server connect directly, or .* --webhook-allow$/
  t.regex(await sent('https://no-such-name.invalid/', { https_proxy: proxy }), note)
  t.regex(await sent('https://127.0.0.1:1/', { https_proxy: proxy }), note)
  const plain = await startReceiver(t)
  for (const [url, environment] of [
    ['https://no-such-name.invalid/', {}],
    ['https://no-such-name.invalid/', { https_proxy: proxy, no_proxy: 'invalid' }],
    ['https://10.0.0.1/', { https_proxy: proxy }],
    [plain.url.replace('http:', 'https:'), { https_proxy: proxy }],
  ] as const)
    t.notRegex(await sent(url, environment), /proxy|secret/)
})

test('a receiver whose two addresses both refuse is a failure with that reason', async (t) => {
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
  const judge = createJudge({ insecure: true, allow: ['127.0.0.0/8'] })
  const post = createPost(judge, async () => addresses)
  t.teardown(() => post.close())
  const outcome = await post({ url: 'http://localhost:1/', headers: {}, body }, running)
  t.regex(outcome?.error ?? '', /ECONNREFUSED/)
})

test('S14 a name with any private address is refused, and no name is looked up twice', async (t) => {
  const receiver = await startReceiver(t)
  const { port } = new URL(receiver.url)
  const addresses: Record<string, readonly string[]> = {
    'home.example': ['127.0.0.1'],
    'metadata.example': ['169.254.169.254'],
    'mapped.example': ['::ffff:169.254.169.254'],
    'translated.example': ['64:ff9b::7f00:1'],
    'both.example': ['1.1.1.1', '10.0.0.1'],
    'none.example': [],
  }
  const asked: string[] = []
  const resolve = async (host: string) => {
    asked.push(host)
    return (addresses[host] ?? []).map((address) => ({ address, family: isIP(address) }))
  }
  const strict = createPost(createJudge({ insecure: true }), resolve)
  t.teardown(async () => strict.close())
  for (const [host, found] of Object.entries(addresses)) {
    const outcome = await strict({ url: `https://${host}:${port}/`, headers: {}, body }, running)
    const why = found.length === 0 ? /has no address/ : /^the URL leads to \S+, which is not a public address/
    t.regex(outcome?.error ?? '', why, host)
  }
  t.deepEqual(asked, Object.keys(addresses))

  // A later lookup result must not matter: the socket connects to the checked address.
  const answers = ['127.0.0.1', '169.254.169.254']
  const rebound = createPost(createJudge({ insecure: true, allow: ['127.0.0.1'] }), async () => {
    return [{ address: answers.shift() ?? '', family: 4 }]
  })
  t.teardown(async () => rebound.close())
  const sending = { url: `http://home.example:${port}/`, headers: {}, body }
  t.deepEqual(await rebound(sending, running), { status: 204, error: null })
  t.regex((await rebound(sending, running))?.error ?? '', /169\.254\.169\.254/)
  t.is(receiver.got.length, 1)
})

test.serial('S14 the proxy of the environment is not used', async (t) => {
  const receiver = await startReceiver(t)
  const names = ['http_proxy', 'HTTP_PROXY', 'all_proxy', 'NODE_USE_ENV_PROXY']
  for (const name of names) process.env[name] = name.startsWith('NODE') ? '1' : 'http://127.0.0.1:9'
  t.teardown(async () => {
    for (const name of names) delete process.env[name]
  })
  t.deepEqual(await posting(t)(receiver.url), { status: 204, error: null })
})

test.serial('S14 an untrusted certificate is refused, whatever the environment says', async (t) => {
  const pair = await generate([{ name: 'commonName', value: 'localhost' }])
  let asked = 0
  const server = createTlsServer({ key: pair.private, cert: pair.cert }, (_, response) => {
    asked++
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => void server.close())
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(async () => {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  })
  const { port } = server.address() as AddressInfo
  const outcome = await posting(t)(`https://127.0.0.1:${port}/`)
  t.regex(outcome?.error ?? '', /self-signed certificate/)
  t.is(asked, 0)
})
