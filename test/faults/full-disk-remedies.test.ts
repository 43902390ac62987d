import { rmSync } from 'node:fs'
import { statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { sendBytes } from '../helpers/clients/files.ts'
import { mountSmallDisk } from '../helpers/faults/small-disk.ts'
import { adminLogin, startTestServer, type TestServer } from '../helpers/servers/server.ts'
import { until } from '../helpers/until.ts'

const mounted = mountSmallDisk(40 * 1024 * 1024)
test.after.always(() => mounted?.unmount())
// Only a process that may mount can fill a small disk: root, outside a plain container.
const whereMountable = mounted === null ? test.serial.skip : test.serial

/** Writes until the disk is full. */
async function fill(path: string): Promise<void> {
  const ballast = (bytes: number) => writeFile(path, Buffer.alloc(bytes), { flag: 'a' })
  for (const bytes of [1024 * 1024, 4096])
    for (;;)
      try {
        await ballast(bytes)
      } catch {
        break
      }
}

const isReady = async (server: TestServer) => (await server.api('GET', '/api/ready')).status === 200

whereMountable(
  'F04 logins, password changes and revocations work on a full disk, and new work is refused until there is room',
  async (t) => {
    const disk = String(mounted?.directory)
    const ballast = join(disk, 'ballast')
    t.teardown(() => rmSync(ballast, { force: true }))
    const server = await startTestServer(t, { dataDir: join(disk, 'data'), logLevel: 'ERROR' })
    const operator = { username: 'mallory', password: 'long enough' }
    const { id } = await server.data('POST', '/api/users', { ...operator, role: 'OPERATOR' })
    const { token } = await server.data('POST', '/api/auth/login', operator)
    const asOperator = { authorization: `Bearer ${token}` }
    const pat = await server.api('POST', '/api/tokens', { name: 'nightly' }, asOperator)
    t.is(pat.status, 201)
    const { data: file } = await sendBytes({ url: server.url, token }, 'POST', '/api/files', 'theirs')
    await fill(ballast)
    await until('the reserve is released', async () => (await statfs(disk)).bavail > 64)
    t.false(await isReady(server))

    const script = () => server.api('POST', '/api/scripts', { name: 'new', content: 'true', type: 'BASH' })
    const refused = await script()
    t.is(refused.status, 503)
    t.regex(refused.body.message, /full: until there is room/)
    const admin = await server.data('POST', '/api/auth/login', {
      username: 'admin',
      password: 'a password for tests',
    })
    t.is(typeof admin.token, 'string')
    const changed = { currentPassword: operator.password, newPassword: 'another long one' }
    t.is((await server.api('POST', '/api/auth/password', changed, asOperator)).status, 200)
    const patToken = { authorization: `Bearer ${pat.body.data.token}` }
    t.is((await server.api('DELETE', `/api/files/${file.fileId}`)).status, 200)
    t.is((await server.api('PATCH', `/api/users/${id}`, { enabled: false })).status, 200)
    t.is((await server.api('GET', '/api/auth/me', undefined, patToken)).status, 401)
    t.is((await server.api('DELETE', `/api/users/${id}`)).status, 200)
    t.is(
      (await server.api('POST', '/api/auth/logout', undefined, { authorization: `Bearer ${admin.token}` }))
        .status,
      200,
    )
    const actions = (await server.data('GET', '/api/audit?size=6')).content.map(
      ({ action }: { action: string }) => action,
    )
    t.deepEqual(actions, [
      'user.logout',
      'user.delete',
      'user.update',
      'file.delete',
      'user.password',
      'user.login',
    ])

    await server.restart()
    t.is((await script()).status, 503, 'the reserve stays released over a restart')
    t.truthy((await server.data('POST', '/api/auth/login', adminLogin)).token)
    rmSync(ballast)
    await until('there is room', () => isReady(server))
    t.is((await script()).status, 201)
    await until(
      'the audit entry exists',
      async () => (await server.data('GET', '/api/audit?action=audit.resume')).totalElements > 0,
    )
  },
)
