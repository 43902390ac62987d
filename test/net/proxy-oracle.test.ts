import { execFile, execFileSync } from 'node:child_process'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { EnvHttpProxyAgent, request } from 'undici'
import { proxyFor } from '../../src/net/proxy.ts'

async function startServer(t: ExecutionContext, answer: RequestListener): Promise<number> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  server.on('connect', (_, socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
  t.teardown(() => server.close())
  await new Promise((listening) => server.once('listening', listening))
  return (server.address() as AddressInfo).port
}

const hosts = ['rsm.example', 'a.rsm.example', 'rsm.example.org', 'xrsm.example', '127.0.0.1']
const lists = ['', 'rsm.example', '.rsm.example', '*.rsm.example', 'RSM.Example', 'other, rsm.example', '*']
const withPorts = ['rsm.example:PORT', 'rsm.example:1', '127.0.0.1', '127.0.0.1:1', 'example']

test('NO_PROXY has the same meaning as in undici', async (t) => {
  const port = await startServer(t, (_, answer) => answer.end())
  const proxy = `http://127.0.0.1:${await startServer(t, (_, answer) => answer.end())}`
  for (const entry of [...lists, ...withPorts])
    for (const host of hosts) {
      const noProxy = entry.replace('PORT', String(port))
      const url = `http://${host}:${port}/`
      const dispatcher = new EnvHttpProxyAgent({
        httpProxy: proxy,
        noProxy,
        connect: { lookup: (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]) },
      })
      const isDirect = await request(url, { dispatcher }).then(
        ({ statusCode }) => statusCode === 200,
        () => false,
      )
      await dispatcher.destroy()
      const ours = proxyFor(new URL(url), { HTTP_PROXY: proxy, NO_PROXY: noProxy })
      t.is(ours === null, isDirect, `${url} with NO_PROXY=${noProxy}`)
    }
})

/** Hosts that are reached directly or not. IPv6 networks are in proxy.test.ts, because curl 7.88 does not match them. */
const byList: readonly (readonly [host: string, list: string, isDirect: boolean])[] = [
  ['127.0.0.1', '127.0.0.0/8', true],
  ['127.0.0.1', '127.0.0.1/32', true],
  ['127.0.0.1', '127.0.0.2/32', false],
  ['127.0.0.1', '127.0.0.2/30', true],
  ['127.0.0.1', '127.0.0.1', true],
  ['127.0.0.1', 'x 10.0.0.0/8,127.0.0.0/8', true],
  ['127.0.0.1', '127.0.0.0/33', false],
  ['127.0.0.1', '127.*', false],
  ['127.0.0.1', '127.', false],
  ['127.0.0.1', '.0.0.1', false],
  ['127.0.0.1', '0.0.1', false],
  ['127.0.0.1', '*', true],
  ['127.9.9.9', '127.9.0.0/16', true],
  ['127.9.9.9', '127.8.0.0/16', false],
  ['[::1]', '::1', true],
  ['[::1]', 'fd00::/8', false],
  ['[::1]', '127.0.0.0/8', false],
  ['rsm.example', '127.0.0.0/8', false],
  ['rsm.example', '.example', true],
  ['rsm.example', '.rsm.example', true],
  ['rsm.example', 'EXAMPLE.', true],
  ['rsm.example.', 'rsm.example', true],
  ['rsm.example', 'sm.example', false],
]

function knowsNetworks(): boolean {
  try {
    const [, major, minor] =
      /^curl (\d+)\.(\d+)/.exec(execFileSync('curl', ['-V'], { encoding: 'utf8' })) ?? []
    return Number(major) > 7 || Number(minor) >= 86
  } catch {
    return false
  }
}

test('NO_PROXY has the same meaning as in curl, including IPv4 networks', async (t) => {
  const asked = new Set<string>()
  const port = await startServer(t, (_, answer) => answer.end())
  const proxy = `http://127.0.0.1:${await startServer(t, ({ url = '' }, answer) => {
    asked.add(new URL(url).search)
    answer.end()
  })}`
  // Older versions of curl do not know networks, so only our own result is checked there.
  const hasCurl = knowsNetworks()
  const look = async ([host, list, isDirect]: (typeof byList)[number], index: number) => {
    const url = `http://${host}:${port}/?${index}`
    const what = `${url} with NO_PROXY=${list}`
    t.is(proxyFor(new URL(url), { HTTP_PROXY: proxy, NO_PROXY: list }) === null, isDirect, what)
    if (!hasCurl) return
    const env = { PATH: process.env['PATH'], http_proxy: proxy, NO_PROXY: list }
    const to = ['--resolve', `rsm.example:${port}:127.0.0.1`, '--resolve', `rsm.example.:${port}:127.0.0.1`]
    await promisify(execFile)('curl', ['-sm', '5', ...to, url], { env }).catch(() => undefined)
    t.is(!asked.has(`?${index}`), isDirect, `curl: ${what}`)
  }
  await Promise.all(byList.map(look))
})
