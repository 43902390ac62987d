import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import test from 'ava'
import { sendBytes, sha256Of, upload } from '../../helpers/clients/files.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** Sends the head of a request and its first `at` bytes, and cuts the connection. */
async function cutAt({ url, token }: TestServer, path: string, bytes: Uint8Array, at: number): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  const head = `PUT ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/octet-stream\r\ncontent-length: ${bytes.length}\r\n\r\n`
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.write(head)
    socket.write(bytes.subarray(0, at), () => resolve())
  })
  socket.destroy()
}

for (const secret of [false, true])
  test(`an upload cut at every quarter continues from its offset${secret ? ', sealed as well' : ''}`, async (t) => {
    const server = await startTestServer(t)
    const bytes = randomBytes(400_000)
    const begun = await sendBytes(
      server,
      'POST',
      `/api/files?size=${bytes.length}&sha256=${sha256Of(bytes)}&secret=${secret}`,
    )
    t.is(begun.status, 201)
    t.like(begun.data, { offset: 0, size: bytes.length, isComplete: false, isSecret: secret })
    const path = `/api/files/${begun.data.fileId}`
    const offset = async () => (await server.data('GET', path)).offset as number
    for (const quarter of [1, 2, 3]) {
      // A cut may lose bytes in transit, and a sealed file grows by whole chunks.
      await until('a quarter is stored', async () => {
        const at = await offset()
        if (at > quarter * 100_000 - 65_536) return true
        await cutAt(server, `${path}?offset=${at}`, bytes.subarray(at), quarter * 100_000 - at)
        return false
      })
      t.true((await offset()) <= quarter * 100_000)
      if (quarter === 2) await server.restart()
    }
    // The server may not have noticed the last cut yet.
    await until(
      'the upload is not being written',
      async () => (await sendBytes(server, 'PUT', `${path}?offset=${await offset()}`)).status === 200,
    )
    const at = await offset()
    const wrong = await sendBytes(server, 'PUT', `${path}?offset=${at - 1}`, bytes.subarray(at - 1))
    t.is(wrong.status, 409)
    t.deepEqual(wrong.data, { offset: at })
    const last = await sendBytes(server, 'PUT', `${path}?offset=${at}`, bytes.subarray(at))
    t.is(last.status, 200)
    t.like(last.data, { isComplete: true, offset: bytes.length, size: bytes.length, sha256: sha256Of(bytes) })
    const after = await sendBytes(server, 'PUT', `${path}?offset=${bytes.length}`, 'more')
    t.is(after.status, 409)
    t.deepEqual(after.data, { offset: bytes.length })
  })

test('the second of two simultaneous writers to an upload gets a 409 with the current offset', async (t) => {
  const server = await startTestServer(t)
  const { data } = await sendBytes(server, 'POST', '/api/files')
  const path = `/api/files/${data.fileId}?offset=0`
  let push: (piece: Uint8Array) => void = () => undefined
  let end = () => undefined as void
  const slow = new ReadableStream<Uint8Array>({
    start(controller) {
      push = (piece) => controller.enqueue(piece)
      end = () => controller.close()
    },
  })
  const first = sendBytes(server, 'PUT', `${path}&end=true`, slow)
  push(Buffer.from('first'))
  await until('the first has begun', () => existsSync(join(server.dataDir, 'files', data.fileId)))
  const second = await sendBytes(server, 'PUT', path, 'second')
  t.is(second.status, 409)
  t.deepEqual(second.data, { offset: 0 }, 'only durable bytes count')
  end()
  t.like((await first).data, { isComplete: true, size: 5, sha256: sha256Of('first') })
})

test('a sha256 or a size that does not match is a 400 that names it', async (t) => {
  const server = await startTestServer(t)
  const sha256 = sha256Of('other')
  for (const [query, bytes, field] of [
    [`sha256=${sha256}`, 'bytes', 'sha256'],
    ['size=6', 'bytes', 'size'],
    ['size=4', 'bytes', 'size'],
    ['size=-1', 'bytes', 'size'],
    ['sha256=abc', 'bytes', 'sha256'],
    ['nonsense=1', 'bytes', 'nonsense'],
  ] as const) {
    const { status, body } = await sendBytes(server, 'POST', `/api/files?${query}`, bytes)
    t.is(status, 400, query)
    t.is(body.errors[0].field, field, query)
  }
  const { data } = await sendBytes(server, 'POST', `/api/files?sha256=${sha256}`)
  const wrong = await sendBytes(server, 'PUT', `/api/files/${data.fileId}?offset=0&end=true`, 'bytes')
  t.is(wrong.status, 400)
  t.is((await server.api('GET', `/api/files/${data.fileId}`)).status, 404)
  const { data: short } = await sendBytes(server, 'POST', '/api/files?size=6')
  t.is((await sendBytes(server, 'PUT', `/api/files/${short.fileId}?offset=0&end=true`, 'bytes')).status, 400)
  t.like((await sendBytes(server, 'PUT', `/api/files/${short.fileId}?offset=5`, '!')).data, {
    isComplete: true,
    size: 6,
  })
  t.deepEqual((await readdir(join(server.dataDir, 'files'))).toSorted(), [short.fileId, 'content'])
})

test('an oversized upload is a 413, at once if it announces its size, else as soon as it exceeds the limit', async (t) => {
  const server = await startTestServer(t, { maxFileSize: 100_000 })
  const said = await sendBytes(server, 'POST', '/api/files?size=100001')
  t.is(said.status, 413)
  t.regex(said.body.message, /^The file has 100001 bytes, and the limit is 100000 \(--max-file-size/)
  t.is((await sendBytes(server, 'POST', '/api/files', randomBytes(100_001))).status, 413)
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(randomBytes(16_384)),
  })
  t.is((await sendBytes(server, 'POST', '/api/files', endless)).status, 413)
  t.is((await upload(server, randomBytes(100_000))).size, 100_000)
  const files = await readdir(join(server.dataDir, 'files'))
  t.is(files.length, 2)
})

test("another user's upload is a 404, and content must be sent as bytes", async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/users', {
    username: 'olga',
    password: 'a password for olga',
    role: 'OPERATOR',
  })
  await server.data('POST', '/api/users', {
    username: 'vera',
    password: 'a password for vera',
    role: 'VIEWER',
  })
  const as = async (username: string) => {
    const login = { username, password: `a password for ${username}` }
    const { body } = await server.api('POST', '/api/auth/login', login)
    return { url: server.url, token: body.data.token as string }
  }
  const { fileId } = await upload(server, 'mine')
  const { hostId } = await server.enroll('web1')
  const olga = await as('olga')
  const get = await fetch(`${server.url}/api/files/${fileId}`, {
    headers: { authorization: `Bearer ${olga.token}` },
  })
  t.is(get.status, 404)
  t.is((await sendBytes(olga, 'PUT', `/api/files/${fileId}?offset=4`, 'x')).status, 404)
  const body = { copy: { fileId, path: '/f', kind: 'FILE' }, target: { hostIds: [hostId] } }
  const copy = await server.api('POST', '/api/tasks', body, { authorization: `Bearer ${olga.token}` })
  t.is(copy.status, 400)
  t.is(copy.body.errors?.[0]?.field, 'copy.fileId')
  t.is((await sendBytes(await as('vera'), 'POST', '/api/files', 'x')).status, 403)
  t.is((await server.api('POST', '/api/files', {})).status, 415)
  t.is((await sendBytes(server, 'POST', '/api/tasks', 'x')).status, 415)
})

test('an empty file is a valid upload', async (t) => {
  const server = await startTestServer(t)
  const empty = sha256Of('')
  t.like((await sendBytes(server, 'POST', '/api/files?size=0')).data, {
    isComplete: true,
    size: 0,
    sha256: empty,
  })
  const { data } = await sendBytes(server, 'POST', '/api/files')
  const ended = await sendBytes(server, 'PUT', `/api/files/${data.fileId}?offset=0&end=true`)
  t.like(ended.data, { isComplete: true, size: 0, sha256: empty })
})
