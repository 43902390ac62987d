import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { RsmError } from '../../src/core/errors.ts'
import { formatVersion } from '../../src/server/storage/files/store/files.ts'
import { openJsonStore } from '../../src/server/storage/files/store/store.ts'
import { mountSmallDisk } from '../helpers/faults/small-disk.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { task } from '../helpers/servers/store-records.ts'
import { until } from '../helpers/until.ts'

const mounted = mountSmallDisk(2 * 1024 * 1024)
test.after.always(() => mounted?.unmount())
// Only a process that may mount can fill a small disk: root, outside a plain container.
const whereMountable = mounted === null ? test.serial.skip : test.serial

whereMountable(
  'F04 the store refuses writes on a full disk with a clear message, still reads, and recovers automatically',
  async (t) => {
    const disk = String(mounted?.directory)
    t.teardown(() => rm(join(disk, 'store'), { recursive: true }))
    const ballast = join(disk, 'ballast')
    await writeFile(ballast, Buffer.alloc(1024 * 1024))
    const directory = join(disk, 'store')
    const told = new EventTarget()
    let store = await openJsonStore({
      directory,
      compactAfterBytes: 100_000,
      probeMilliseconds: 20,
      log: (level) => level === 'info' && told.dispatchEvent(new Event('room')),
    })
    t.teardown(() => store.close())
    const acknowledged: string[] = []
    let refused: unknown = null
    for (let turn = 0; refused === null && turn < 5000; turn++) {
      const ids = [0, 1, 2, 3].map((writer) => `t${turn}-${writer}`)
      const results = await Promise.allSettled(
        ids.map((id) => store.transact((tx) => tx.put('tasks', task(id)))),
      )
      for (const [place, result] of results.entries()) {
        if (result.status === 'fulfilled') acknowledged.push(String(ids[place]))
        else refused = result.reason
      }
    }
    t.true(refused instanceof RsmError && refused.code === 'unavailable')
    t.regex(store.readOnlyReason ?? '', /full/)
    t.is((await store.query('tasks')).items.length, acknowledged.length)

    const room = once(told, 'room')
    await rm(ballast)
    await room
    t.is(store.readOnlyReason, null)
    await store.transact((tx) => tx.put('tasks', task('after')))
    await store.close()
    store = await openJsonStore({ directory })
    const ids = (await store.query('tasks')).items.map(({ id }) => id)
    t.is(ids.join(' '), [...acknowledged, 'after'].sort().join(' '))
  },
)

whereMountable(
  'A02 F04 a server upgraded on a full disk starts, serves its data, and records the start once there is room',
  async (t) => {
    const disk = String(mounted?.directory)
    const dataDir = join(disk, 'data')
    await mkdir(dataDir, { mode: 0o700 })
    const server = await startTestServer(t, { dataDir, logLevel: 'ERROR' })
    const { hostId, token } = await server.enroll('web1')
    await server.stop()
    // 0.1.0 does not have these records.
    const directory = join(dataDir, 'store')
    const former = await openJsonStore({ directory })
    const [runs, keys] = [(await former.query('runs')).items, (await former.query('keys')).items]
    await former.transact((tx) => {
      for (const { id } of runs) tx.remove('runs', id)
      for (const { id } of keys) tx.remove('keys', id)
    })
    // Fills the journal's last page up to 20 bytes: more data would fit into it without room on the disk.
    const journal = (await readdir(directory)).find((name) => name.startsWith('journal'))
    const sizeOf = async () => (await stat(join(directory, String(journal)))).size
    const [web1] = (await former.query('hosts')).items
    const pad = (text: string) =>
      former.transact((tx) => web1 && tx.put('hosts', { ...web1, tags: { pad: text } }))
    const before = await sizeOf()
    await pad('')
    const size = await sizeOf()
    await pad('x'.repeat(4096 - ((size + (size - before) + 20) % 4096)))
    await former.close()
    const manifest = join(directory, 'store.json')
    const formatOf = async () => JSON.parse(await readFile(manifest, 'utf8')).format
    await writeFile(
      manifest,
      (await readFile(manifest, 'utf8')).replace(`"format":${formatVersion}`, '"format":2'),
    )
    const ballast = join(disk, 'ballast')
    await t.throwsAsync(writeFile(ballast, Buffer.alloc(2 * 1024 * 1024)), { code: 'ENOSPC' })

    await server.restart()
    t.is((await server.data('GET', `/api/hosts/${hostId}`)).hostname, 'web1')
    const { run } = (await server.data('GET', '/api/server/status')).run
    t.is(await formatOf(), 2)
    const heartbeat = { agentId: 'agent-web1', status: 'HEALTHY' }
    const beat = async () =>
      (await server.api('POST', '/api/agent/heartbeat', heartbeat, { authorization: `Bearer ${token}` })).body
        .data
    t.is((await beat()).mark, undefined, 'no agent gets the mark of a start that is not stored')

    await rm(ballast)
    await until('the start is stored', async () => (await beat()).mark?.run === run)
    t.is(await formatOf(), formatVersion)
    await server.stop()
    const store = await openJsonStore({ directory })
    t.deepEqual(
      (await store.query('runs')).items.map(({ id }) => id),
      [run],
    )
    await store.close()
  },
)
