import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { sendBytes, upload } from '../../helpers/clients/files.ts'
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

async function asOperator(server: TestServer, username: string) {
  const login = { username, password: 'long enough' }
  const user = await server.data('POST', '/api/users', { ...login, role: 'OPERATOR' })
  const { token } = await server.data('POST', '/api/auth/login', login)
  const call = (method: string, path: string, body?: unknown) =>
    server.api(method, path, body, { authorization: `Bearer ${token}` })
  return { id: user.id as number, url: server.url, token: token as string, call }
}

const run = (t: ExecutionContext, server: TestServer, hostId: number, fileId: string) =>
  server
    .api('POST', '/api/tasks', {
      script: { content: 'cat' },
      stdin: { fileId },
      target: { hostIds: [hostId] },
      async: true,
      queueSeconds: 60,
    })
    .then(({ status, body }) => {
      t.is(status, 200, JSON.stringify(body))
      return body.data.taskId as string
    })

test('S10 the unused uploads of a user are limited in total; an upload that a task needs does not count', async (t) => {
  const server = await startTestServer(t, { maxUploadBytes: 1000 })
  const { hostId } = await server.enroll('web1')
  const mallory = await asOperator(server, 'mallory')
  const first = await upload(server, randomBytes(600))
  await upload(mallory, randomBytes(1000))
  const more = await sendBytes(mallory, 'POST', '/api/files?size=1')
  t.is(more.status, 413)
  t.regex(more.body.message, /--max-upload-bytes.*rsm files list, rsm files remove/)
  t.is((await sendBytes(server, 'POST', '/api/files', randomBytes(600))).status, 413)
  const { data } = await sendBytes(server, 'POST', '/api/files')
  t.is((await sendBytes(server, 'PUT', `/api/files/${data.fileId}?offset=0`, randomBytes(401))).status, 413)
  await run(t, server, hostId, first.fileId)
  t.is((await sendBytes(server, 'PUT', `/api/files/${data.fileId}?offset=0`, randomBytes(1000))).status, 200)
})

test('an ADMIN lists and removes all uploads, others their own; an upload in use is not removed', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const [olga, mallory] = [await asOperator(server, 'olga'), await asOperator(server, 'mallory')]
  const large = await upload(mallory, randomBytes(3000), 'name=large.iso')
  const small = await upload(olga, 'small')
  const needed = await upload(server, 'needed')
  const taskId = await run(t, server, hostId, needed.fileId)

  const { content, totalElements } = await server.data('GET', '/api/files?size=2')
  t.is(totalElements, 3)
  t.like(content[0], { fileId: large.fileId, name: 'large.iso', offset: 3000, user: 'mallory' })
  const own = async (who: typeof olga, query = '') =>
    (await who.call('GET', `/api/files${query}`)).body.data.content.map(
      (file: { fileId: string }) => file.fileId,
    )
  t.deepEqual(await own(olga), [small.fileId])
  t.deepEqual(await own(olga, '?user=mallory'), [])
  t.is((await server.data('GET', '/api/files?user=mallory')).totalElements, 1)

  t.is((await olga.call('DELETE', `/api/files/${large.fileId}`)).status, 404)
  t.is((await olga.call('DELETE', `/api/files/${small.fileId}`)).status, 200)
  t.is((await server.api('DELETE', `/api/files/${large.fileId}`)).status, 200)
  const kept = await server.api('DELETE', `/api/files/${needed.fileId}`)
  t.is(kept.status, 409)
  t.regex(kept.body.message, new RegExp(`Task ${taskId} runs with file`))
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  await until(
    'its end',
    async () => (await server.api('DELETE', `/api/files/${needed.fileId}`)).status === 200,
  )
  t.is((await server.data('GET', '/api/files')).totalElements, 0)
  const { content: audited } = await server.data('GET', '/api/audit?action=file.delete&size=500')
  t.like(
    audited.find(
      (entry: { object: { id: string }; actor: { name: string } }) =>
        entry.object.id === large.fileId && entry.actor.name === 'admin',
    ),
    { outcome: 'SUCCESS', object: { type: 'file' } },
  )
})

const mounted = mountSmallDisk(40 * 1024 * 1024)
test.after.always(() => mounted?.unmount())
// A small disk requires permission to mount: root, outside a plain container.
const whereMountable = mounted === null ? test.serial.skip : test.serial

whereMountable(
  'uploads leave a tenth of a small disk to the store, whatever size they announce',
  async (t) => {
    const disk = String(mounted?.directory)
    const server = await startTestServer(t, { dataDir: join(disk, 'data') })
    t.teardown(() => rmSync(join(disk, 'ballast'), { force: true }))
    await writeFile(join(disk, 'ballast'), Buffer.alloc(12 * 1024 * 1024))
    const refused = await sendBytes(server, 'POST', `/api/files?size=${26 * 1024 * 1024}`)
    t.is(refused.status, 413)
    t.regex(
      refused.body.message,
      /^No room for the upload: the server's disk has 2\d MiB free, and uploads must leave 4 MiB; remove unused uploads: /,
    )
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(randomBytes(256 * 1024)),
    })
    const cut = await sendBytes(server, 'POST', '/api/files', endless)
    t.is(cut.status, 413)
    t.is((await server.data('GET', '/api/files')).totalElements, 0)
    t.is((await server.api('GET', '/api/ready')).status, 200)
  },
)
