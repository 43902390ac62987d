import test from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startConnectProxy } from '../../helpers/clients/connect-proxy.ts'
import { startFakeTerminal } from '../../helpers/terminals/fake-terminal.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'

test('a terminal goes through the proxy that the environment names, unless NO_PROXY matches the server', async (t) => {
  const server = await startFakeTerminal(t)
  const { port, tunnels } = await startConnectProxy(t, server.url)
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
  // One for the requests, one for the WebSocket.
  t.true(tunnels.length >= 2)
  const asked = tunnels.map(({ to, authorization }) => `${to} ${authorization}`)
  t.deepEqual([...new Set(asked)], [`${new URL(server.url).host} ${basic}`])
  t.is(tunnels.length, before, 'no tunnel if NO_PROXY matches the server')
})
