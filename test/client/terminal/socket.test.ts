import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import test from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startFakeTerminal } from '../../helpers/terminals/fake-terminal.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'

test('a terminal goes through the proxy that the environment names, unless NO_PROXY names the server', async (t) => {
  const server = await startFakeTerminal(t)
  const tunnels: (string | undefined)[] = []
  const proxy = createHttp()
  proxy.on('connect', (request, socket) => {
    tunnels.push(`${request.url} ${request.headers['proxy-authorization']}`)
    const onward = connect(Number(new URL(server.url).port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 ok\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    onward.on('error', () => socket.destroy())
    socket.on('error', () => onward.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close())
  const { port } = proxy.address() as AddressInfo
  const env = { RSM_URL: server.url, RSM_TOKEN: 'x', HTTP_PROXY: `http://ann:secret@127.0.0.1:${port}` }
  let before = 0
  for (const more of [{}, { NO_PROXY: '127.0.0.1' }]) {
    before = tunnels.length
    const home = temporaryDirectory(t)
    const pty = bashOnPty(t, `exec ${rsm} terminal web1`, home, { ...env, ...more })
    const client = await server.client()
    t.is(client.authorization, 'Bearer x')
    client.attached()
    client.send('TERMINAL_OUTPUT', { sequence: 0, data: 'through' })
    await pty.shows(/through/)
    client.send('TERMINAL_CLOSED', { exitCode: 0, signal: null, reason: null })
    t.is(await pty.ended, 0)
  }
  const basic = `Basic ${Buffer.from('ann:secret').toString('base64')}`
  // For the calls, and one for the socket.
  t.true(tunnels.length >= 2)
  t.deepEqual([...new Set(tunnels)], [`${new URL(server.url).host} ${basic}`])
  t.is(tunnels.length, before, 'none when NO_PROXY names the server')
})
