import type { ExecutionContext, TestFn } from 'ava'
import type { ScriptVersions } from '../../src/server/storage/ports/store.ts'
import type { ScriptRecord } from '../../src/server/storage/records/script.ts'
import { believed } from '../helpers/faults/believed-clock.ts'

const day = 24 * 3600_000

export const scriptVersion = (id: number, version: number, content = 'true'): ScriptRecord => ({
  id,
  name: `s${id}`,
  description: '',
  type: 'BASH',
  content,
  timeout: null,
  tags: [],
  category: null,
  version,
  sha256: '',
  createdBy: 'admin',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
})

/** Suite for every implementation of ScriptVersions; `most` is the number of versions that it keeps of a script. */
export function scriptVersionsContract(
  test: TestFn,
  open: (t: ExecutionContext, most: number) => Promise<ScriptVersions>,
): void {
  test('versions are read back as they were saved, and listed in order', async (t) => {
    const versions = await open(t, 100)
    for (const version of [2, 10, 1]) await versions.save(scriptVersion(7, version, `echo 'ä' ${version}\n`))
    await versions.save(scriptVersion(8, 1))
    t.deepEqual(await versions.list(7), [1, 2, 10])
    t.deepEqual(await versions.read(7, 10), scriptVersion(7, 10, "echo 'ä' 10\n"))
    t.is(await versions.read(7, 3), null)
    t.deepEqual(await versions.list(9), [])
    await versions.save(scriptVersion(7, 10, "echo 'ä' 10\n"))
    t.deepEqual(await versions.list(7), [1, 2, 10])
  })

  test('the newest versions of a script are kept: each new one replaces the oldest', async (t) => {
    const versions = await open(t, 3)
    for (let version = 1; version <= 5; version++) await versions.save(scriptVersion(7, version))
    t.deepEqual(await versions.list(7), [3, 4, 5])
    t.is(await versions.read(7, 2), null)
  })

  test('`forget` removes all versions of a script', async (t) => {
    const versions = await open(t, 100)
    for (const id of [1, 2]) await versions.save(scriptVersion(id, 1))
    await versions.forget(1)
    await versions.forget(1)
    t.deepEqual(await versions.list(1), [])
    t.is(await versions.read(1, 1), null)
    t.deepEqual(await versions.list(2), [1])
  })

  test('A04 versions of scripts that do not exist are moved aside, and no others', async (t) => {
    const versions = await open(t, 100)
    const now = Date.now()
    const agreed = believed(() => now)
    t.is(await versions.sweep(async () => false, 30, agreed.age(), now), null)
    for (const id of [1, 2, 3]) await versions.save(scriptVersion(id, 1))
    t.not(await versions.sweep(async (id) => id === 2, 30, agreed.age(), now), null)
    t.deepEqual(await Promise.all([1, 2, 3].map((id) => versions.list(id))), [[], [1], []])
    t.is(await versions.sweep(async (id) => id === 2, 30, believed(() => now + 31 * day).age(), now), null)
    t.deepEqual(await versions.list(2), [1])
  })
}
