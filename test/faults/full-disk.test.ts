import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { RsmError } from '../../src/core/errors.ts'
import { openJsonStore } from '../../src/server/store/json/store.ts'
import { mountSmallDisk } from '../helpers/faults/small-disk.ts'
import { task } from '../helpers/servers/store-records.ts'

const mounted = mountSmallDisk(2 * 1024 * 1024)
// Only a process that may mount can have a small disk of its own to fill: root, outside a plain container.
const whereMountable = mounted === null ? test.serial.skip : test.serial

whereMountable(
  'F04 a full disk refuses writes with a clear message, reads go on, and it recovers by itself',
  async (t) => {
    const disk = String(mounted?.directory)
    t.teardown(() => mounted?.unmount())
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
    t.is((await store.all('tasks')).length, acknowledged.length)

    const room = once(told, 'room')
    await rm(ballast)
    await room
    t.is(store.readOnlyReason, null)
    await store.transact((tx) => tx.put('tasks', task('after')))
    await store.close()
    store = await openJsonStore({ directory })
    const ids = (await store.all('tasks')).map(({ id }) => id)
    t.is(ids.join(' '), [...acknowledged, 'after'].sort().join(' '))
  },
)
