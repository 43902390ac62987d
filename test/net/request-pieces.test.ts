import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { openConnection } from '../../src/net/connect.ts'
import { openRequests, type Send } from '../../src/net/request.ts'
import { until } from '../helpers/until.ts'

async function serverOf(t: ExecutionContext, listener: RequestListener): Promise<Send> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const connection = openConnection({ url: `http://127.0.0.1:${port}`, environment: {} })
  return openRequests(connection, (error) => new Error('explained', { cause: error }))
}

const post = { method: 'POST', path: '/', headers: {} }

test('pieces arrive in order, even if their buffer is reused once the next one is requested', async (t) => {
  const send = await serverOf(t, (request, response) => {
    void buffer(request).then((whole) => response.end(whole))
  })
  async function* pieces() {
    const piece = Buffer.alloc(100_000)
    for (let n = 0; n < 50; n++) {
      piece.fill(n)
      yield piece
    }
  }
  const { status, body } = await send({ ...post, body: pieces() })
  const got = await buffer(body)
  t.is(status, 200)
  t.is(got.length, 5_000_000)
  for (let n = 0; n < 50; n++) {
    t.is(got[n * 100_000], n)
    t.is(got[n * 100_000 + 99_999], n)
  }
})

test('a response that arrives before the end of the body is returned, and the rest is not read', async (t) => {
  const send = await serverOf(t, (request, response) => {
    request.once('data', () => response.writeHead(413).end('too much'))
  })
  let isClosed = false
  async function* endless() {
    try {
      for (;;) {
        yield Buffer.alloc(64 * 1024)
        await turn()
      }
    } finally {
      isClosed = true
    }
  }
  const { status, body } = await send({ ...post, body: endless() })
  t.is(status, 413)
  t.is((await buffer(body)).toString(), 'too much')
  await until('its source is closed', () => isClosed)
})

test('a request rejects with the error of its body’s source, and explains errors of the network', async (t) => {
  let isAborted = false
  let reached = () => {}
  const there = new Promise<void>((resolve) => {
    reached = resolve
  })
  const send = await serverOf(t, (request) => {
    request.on('data', reached).on('error', () => (isAborted = true))
  })
  const fault = new Error('the disk is gone')
  async function* failing() {
    yield Buffer.from('a part')
    await there
    throw fault
  }
  t.is(await t.throwsAsync(send({ ...post, body: failing() })), fault)
  await until('the server sees the request aborted', () => isAborted)
  const broken = await serverOf(t, (request) => {
    request.once('data', () => request.socket.destroy())
  })
  async function* some() {
    for (let n = 0; n < 1000; n++) {
      yield Buffer.alloc(64 * 1024)
      await turn()
    }
  }
  await t.throwsAsync(broken({ ...post, body: some() }), { message: 'explained' })
})
