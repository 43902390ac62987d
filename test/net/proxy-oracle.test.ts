import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
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

test('NO_PROXY means what it means to undici', async (t) => {
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
