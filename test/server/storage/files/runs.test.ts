import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { systemClock as clock } from '../../../../src/disk/clock.ts'
import { realDisk } from '../../../../src/disk/durable.ts'
import { beginRun } from '../../../../src/server/storage/files/runs.ts'
import { openJsonStore } from '../../../../src/server/storage/files/store/store.ts'
import type { Runs } from '../../../../src/server/storage/ports/cluster.ts'
import { runsContract } from '../../../contracts/runs.ts'
import { temporaryDirectory } from '../../../fixtures/rsm.ts'
import { host } from '../../../helpers/servers/store-records.ts'
import { until } from '../../../helpers/until.ts'

function markOf(runs: Runs) {
  const mark = runs.recent()
  if (mark === null) throw new Error('this start is not noted')
  return mark
}

runsContract(test, async (t) => {
  const directory = join(temporaryDirectory(t), 'store')
  return {
    async start() {
      const store = await openJsonStore({ directory })
      return {
        runs: await beginRun(store, clock),
        write: () => store.transact((tx) => tx.put('hosts', host(1, 'web1'))),
        end: () => store.close(),
      }
    },
  }
})

test('A02 P49 marks of later work reveal that an older copy of the store was restored', async (t) => {
  const root = temporaryDirectory(t)
  const [directory, copy] = [join(root, 'store'), join(root, 'copy')]
  const first = await openJsonStore({ directory })
  const before = markOf(await beginRun(first, clock))
  await cp(directory, copy, { recursive: true })
  await first.transact((tx) => tx.put('hosts', host(1, 'web1')))
  const runs = await beginRun(first, clock)
  const later = { ...before, sequence: before.sequence + 1 }
  t.true(runs.knows(later))
  t.true(runs.knows(markOf(runs)))
  const marks = [later, markOf(runs)]
  await first.close()
  const restored = await openJsonStore({ directory: copy })
  t.teardown(() => restored.close())
  const again = await beginRun(restored, clock)
  // Its own commits repeat the same numbers, but in a run of its own.
  for (let id = 1; id < 10; id++) await restored.transact((tx) => tx.put('hosts', host(id, `web${id}`)))
  t.true(again.knows(before))
  for (const mark of marks) t.false(again.knows(mark))
})

test('A02 P49 a mark counts only commits that are on disk', async (t) => {
  const directory = join(temporaryDirectory(t), 'store')
  let isHeld = false
  let release: (() => void) | undefined
  const disk = {
    ...realDisk,
    async datasync(descriptor: number) {
      if (isHeld)
        await new Promise<void>((resolve) => {
          release = resolve
        })
      await realDisk.datasync(descriptor)
    },
  }
  const store = await openJsonStore({ directory, disk })
  t.teardown(() => store.close())
  const runs = await beginRun(store, clock)
  const before = markOf(runs).sequence
  isHeld = true
  const writing = store.transact((tx) => tx.put('hosts', host(1, 'web1')))
  await until('it is written, but not yet on disk', () => release !== undefined)
  t.is(markOf(runs).sequence, before)
  isHeld = false
  release?.()
  await writing
  t.is(markOf(runs).sequence, before + 1)
})

test('A02 the runs that agents know and that noticed a restore survive any number of failed starts', async (t) => {
  const directory = join(temporaryDirectory(t), 'store')
  const store = await openJsonStore({ directory })
  t.teardown(() => store.close())
  const startedAt = '2026-03-02T09:30:12.502Z'
  const restore = {
    noticedAt: startedAt,
    reason: 'a backup',
    hostId: 1,
    agentId: 'a',
    taskIds: ['t'],
    strangers: [],
    confirmedAt: null,
  }
  await store.transact((tx) => {
    tx.put('runs', { id: 'noticed', startedAt, first: 0, last: 1, restore })
    tx.put('runs', { id: 'worked', startedAt, first: 1, last: 100 })
    for (let at = 0; at < 10_000; at++)
      tx.put('runs', { id: `failed-${at}`, startedAt, first: 100 + at, last: 101 + at })
  })
  const runs = await beginRun(store, clock)
  t.true(runs.knows({ run: 'worked', sequence: 100 }))
  const kept = new Set((await store.query('runs')).items.map(({ id }) => id))
  t.is(kept.size, 10_001)
  for (const id of ['noticed', 'worked', runs.id, 'failed-2']) t.true(kept.has(id), id)
  for (const id of ['failed-0', 'failed-1']) t.false(kept.has(id), id)
})
