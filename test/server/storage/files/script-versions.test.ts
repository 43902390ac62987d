import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { createScriptVersions } from '../../../../src/server/storage/files/script-versions.ts'
import { scriptVersion as script, scriptVersionsContract } from '../../../contracts/script-versions.ts'
import { temporaryDirectory } from '../../../fixtures/rsm.ts'
import { believed } from '../../../helpers/faults/believed-clock.ts'
import { mountSmallDisk } from '../../../helpers/faults/small-disk.ts'
import { startInsides } from '../../../helpers/servers/services.ts'
import { until } from '../../../helpers/until.ts'

scriptVersionsContract(test, async (t, most) => createScriptVersions(temporaryDirectory(t), most))

test('A04 versions of unknown scripts are moved aside, and removed after the retention time', async (t) => {
  const directory = temporaryDirectory(t)
  const versions = createScriptVersions(directory)
  const day = 24 * 3600_000
  const now = Date.now()
  const age = (at: number) => believed(() => at).age()
  t.is(await versions.sweep(async () => false, 30, age(now), now), null)
  for (const id of [1, 2, 3]) await versions.save(script(id, 1))
  const folder = await versions.sweep(async (id) => id === 2, 30, age(now), now)
  t.deepEqual((await readdir(directory)).toSorted(), ['2', 'orphaned'])
  t.deepEqual((await readdir(folder ?? '')).toSorted(), ['1', '3'])
  await versions.sweep(async (id) => id === 2, 30, age(now + 30 * day - 1), now)
  t.deepEqual((await readdir(folder ?? '')).toSorted(), ['1', '3'])
  await versions.sweep(async (id) => id === 2, 0, age(now + 90 * day), now)
  t.deepEqual((await readdir(folder ?? '')).toSorted(), ['1', '3'])
  await versions.sweep(async (id) => id === 2, 30, age(now + 30 * day), now)
  t.deepEqual(await readdir(join(directory, 'orphaned')), [])
})

test('F04 while the store refuses writes, a script change is refused before any write and can be retried', async (t) => {
  const insides = await startInsides(t)
  const { services, context } = insides
  const { id } = await services.scripts.create({ name: 's', type: 'BASH', content: 'echo 1' })
  insides.refuse(true)
  await t.throwsAsync(services.scripts.update(id, { content: 'echo 2' }), {
    code: 'unavailable',
    message: /disk is full/,
  })
  t.deepEqual(await context.versions.list(id), [])
  insides.refuse(false)
  t.is((await services.scripts.update(id, { content: 'echo 2' })).version, 2)
})

const mounted = mountSmallDisk(64 * 1024)
// Skipped (2026-11-21) if mounting is not permitted: only a small disk of its own can be filled.
const whereMountable = mounted === null ? test.skip : test

whereMountable('F04 a disk too full for a version refuses it with a retry time', async (t) => {
  const disk = String(mounted?.directory)
  t.teardown(() => mounted?.unmount())
  const versions = createScriptVersions(disk)
  await t.throwsAsync(versions.save(script(1, 1, 'x'.repeat(128 * 1024))), {
    code: 'unavailable',
    message: /full/,
  })
  t.deepEqual(await versions.list(1), [])
  // The kernel may free removed space a moment later.
  const kept = () =>
    versions.save(script(1, 1)).then(
      () => true,
      () => false,
    )
  await until('there is room again', kept)
  t.deepEqual(await versions.list(1), [1])
})
