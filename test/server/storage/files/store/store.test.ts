import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { openJsonStore } from '../../../../../src/server/storage/files/store/store.ts'
import type { Store } from '../../../../../src/server/storage/ports/store.ts'
import { storeContract } from '../../../../contracts/store.ts'
import { host, task } from '../../../../helpers/servers/store-records.ts'

async function temporary(teardown: (end: () => Promise<void>) => void): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm store-'))
  teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

storeContract(test, async (teardown) => {
  const directory = await temporary(teardown)
  let store = await openJsonStore({ directory })
  teardown(() => store.close())
  return {
    store,
    reopen: async () => {
      await store.close()
      store = await openJsonStore({ directory })
      return store
    },
  }
})

/** Writes and rewrites until the store has made this number of snapshots. */
async function churn(store: Store, directory: string, snapshots: number): Promise<number> {
  const seen = new Set<string>()
  for (let turn = 0; seen.size <= snapshots && turn < 5000; turn++) {
    await store.transact(async (tx) => {
      const id = await tx.nextId('hosts')
      tx.put('hosts', host(id, `web${id}`))
      tx.put('tasks', task(`t${turn % 10}`, { pauseSeconds: turn }))
      tx.remove('hosts', id - 5)
    })
    for (const name of await readdir(directory))
      if (name.startsWith('snapshot') && name.endsWith('l')) seen.add(name)
    await setImmediate()
  }
  return seen.size
}

test('compaction keeps all records and the previous generation, and never reuses an id', async (t) => {
  const directory = await temporary((end) => t.teardown(end))
  const store = await openJsonStore({ directory, compactAfterBytes: 8192 })
  t.true((await churn(store, directory, 4)) > 4)
  const before = { hosts: (await store.query('hosts')).items, tasks: (await store.query('tasks')).items }
  const highest = Math.max(...before.hosts.map(({ id }) => id))
  await store.transact((tx) => {
    for (const { id } of before.hosts) tx.remove('hosts', id)
  })
  await store.close()
  const names = await readdir(directory)
  t.true(names.filter((name) => name.startsWith('snapshot-')).length <= 3)
  t.false(names.some((name) => name.endsWith('.tmp')))
  const again = await openJsonStore({ directory })
  t.teardown(() => again.close())
  t.deepEqual((await again.query('tasks')).items, before.tasks)
  t.deepEqual((await again.query('hosts')).items, [])
  t.is(await again.transact((tx) => tx.nextId('hosts')), highest + 1)
})

test('directory and files are inaccessible to other users', async (t) => {
  const directory = join(await temporary((end) => t.teardown(end)), 'store')
  const store = await openJsonStore({ directory })
  t.teardown(() => store.close())
  t.is((await stat(directory)).mode & 0o777, 0o700)
  for (const name of await readdir(directory)) {
    t.is((await stat(join(directory, name))).mode & 0o777, 0o600, name)
  }
})

test('a disk that fails in fsync is not retried: callers are refused and the process must exit', async (t) => {
  const directory = await temporary((end) => t.teardown(end))
  let broken = false
  let syncs = 0
  const { realDisk } = await import('../../../../../src/disk/durable.ts')
  const told = new EventTarget()
  const ended = once(told, 'fatal')
  const store = await openJsonStore({
    directory,
    disk: {
      ...realDisk,
      datasync: (descriptor) => {
        if (!broken) return realDisk.datasync(descriptor)
        syncs++
        return Promise.reject(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }))
      },
    },
    onFatal: () => told.dispatchEvent(new Event('fatal')),
  })
  t.teardown(() => store.close())
  await store.transact((tx) => tx.put('hosts', host(1, 'web1')))
  broken = true
  const writes = [2, 3].map((id) => store.transact((tx) => tx.put('hosts', host(id, `web${id}`))))
  for (const write of writes) await t.throwsAsync(write, { code: 'unavailable' })
  await ended
  await t.throwsAsync(
    store.transact((tx) => tx.put('hosts', host(4, 'web4'))),
    { code: 'unavailable' },
  )
  t.is(syncs, 1)
  t.is((await store.query('hosts')).items.length, 1)
  t.regex(store.readOnlyReason ?? '', /EIO/)
})

test('a partial write on a full disk is cut back, waiting writes are refused, and writing resumes later', async (t) => {
  const directory = await temporary((end) => t.teardown(end))
  const { realDisk } = await import('../../../../../src/disk/durable.ts')
  let full = false
  const told = new EventTarget()
  const store = await openJsonStore({
    directory,
    probeMilliseconds: 5,
    log: (level) => level === 'info' && told.dispatchEvent(new Event('room')),
    disk: {
      ...realDisk,
      write: async (descriptor, data, position) => {
        if (!full) return realDisk.write(descriptor, data, position)
        await realDisk.write(descriptor, data.subarray(0, 100), position)
        throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
      },
    },
  })
  await store.transact((tx) => tx.put('hosts', host(1, 'web1')))
  full = true
  const room = once(told, 'room')
  const refused = [2, 3, 4].map((id) => store.transact((tx) => tx.put('hosts', host(id, `web${id}`))))
  for (const write of refused) await t.throwsAsync(write, { code: 'unavailable', message: /full/ })
  t.is((await store.query('hosts')).items.length, 1)
  full = false
  await room
  t.is(store.readOnlyReason, null)
  await store.transact((tx) => tx.put('hosts', host(2, 'web2')))
  await store.close()
  const again = await openJsonStore({ directory, log: () => t.fail('the store needed no repair') })
  t.teardown(() => again.close())
  t.is((await again.query('hosts')).items.length, 2)
})
