import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import test from 'ava'
import ssh2 from 'ssh2'
import { connect } from '../../../src/server/agents/installs/connection.ts'

test('a host gets 3 s for the login, however many kinds of host keys are tried', async (t) => {
  const { private: key } = ssh2.utils.generateKeyPairSync('ed25519')
  const sshd = new ssh2.Server({ hostKeys: [key] }, (client) => client.on('error', () => undefined))
  let connections = 0
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    t.teardown(() => socket.destroy())
    // Later connections get no response.
    if (connections++ === 0) sshd.injectSocket(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const access = { ip: '127.0.0.1', port, username: 'root', login: { password: 'p' }, password: 'p' }
  const judge = async () => 'host key changed'
  const began = performance.now()
  const { signal } = new AbortController()
  await t.throwsAsync(connect({ access, judge, within: 3_000, signal }), {
    message: /timed out after 3 s$/,
  })
  const took = performance.now() - began
  t.true(took < 6_000, `${took} ms`)
  t.true(connections > 1, String(connections))
})
