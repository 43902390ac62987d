import { createHash } from 'node:crypto'
import type { TestFn } from 'ava'
import { rejects } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

/** Suite for every implementation of ScriptService (contract §3). */
export function scriptsContract(test: TestFn, name: string, open: ServicesOf): void {
  test(`A15 ${name} scripts: declared params are shown with a script, in a list by name and in its versions`, async (t) => {
    const { scripts } = await open(t)
    const content =
      '# rsm: param VERSION required pattern="\\\\d+(\\\\.\\\\d+)*" "like 1.2", param KEEP default=3\n# rsm: param KEY secret\n'
    const none = { required: false, default: null, description: '', secret: false, pattern: null }
    const params = [
      { ...none, name: 'VERSION', required: true, description: 'like 1.2', pattern: '\\d+(\\.\\d+)*' },
      { ...none, name: 'KEEP', default: '3' },
      { ...none, name: 'KEY', secret: true },
    ]
    const { id, ...made } = await scripts.create({ name: 'deploy', type: 'BASH', content })
    t.deepEqual(made.params, params)
    t.deepEqual((await scripts.get(id)).params, params)
    t.deepEqual((await scripts.list({ name: 'deploy' })).content[0]?.params, params)
    t.deepEqual((await scripts.update(id, { content: 'true' })).params, [])
    t.deepEqual((await scripts.version(id, 1)).params, params)
  })

  test(`${name} scripts: a script keeps its text exactly, and every change makes a new version`, async (t) => {
    const { scripts } = await open(t)
    const content = '#!/bin/bash\necho "ü\t\r$X" # 😀\n\n'
    const made = await scripts.create({ name: 's', type: 'BASH', content })
    t.like(made, { version: 1, description: '', timeout: null, category: null, createdBy: 'admin', content })
    t.is(made.sha256, createHash('sha256').update(content).digest('hex'))
    const changed = await scripts.update(made.id, { content: 'true', timeout: 0, tags: ['a'], category: 'c' })
    t.like(changed, { version: 2, content: 'true', timeout: 0, category: 'c', name: 's' })
    t.not(changed.sha256, made.sha256)
    const reset = await scripts.update(made.id, {
      timeout: null,
      tags: null,
      category: null,
      description: null,
    })
    t.like(reset, { version: 3, timeout: null, category: null, description: '' })
    t.deepEqual(reset.tags, [])
    t.deepEqual(await scripts.get(made.id), reset)
  })

  test(`${name} scripts: every version can be read as it was; a patch without a change makes none`, async (t) => {
    const { scripts } = await open(t)
    const first = await scripts.create({ name: 's', type: 'BASH', content: 'echo 1' })
    t.deepEqual(await scripts.update(first.id, { content: 'echo 1', description: null }), first)
    const second = await scripts.update(first.id, { content: 'echo 2 ü' })
    const third = await scripts.update(first.id, { name: 'renamed', tags: ['a'] })
    const { content: versions, totalElements } = await scripts.versions(first.id, {})
    t.is(totalElements, 3)
    t.deepEqual(
      versions.map(({ version, name: called, sha256, bytes }) => [version, called, sha256, bytes]),
      [
        [1, 's', first.sha256, 6],
        [2, 's', second.sha256, 9],
        [3, 'renamed', third.sha256, 9],
      ],
    )
    t.deepEqual(await scripts.version(first.id, 1), { ...first, changedBy: 'admin' })
    t.deepEqual(await scripts.version(first.id, 2), { ...second, changedBy: 'admin' })
    t.deepEqual(await scripts.version(first.id, 3), { ...third, changedBy: 'admin' })
    const page = await scripts.versions(first.id, { page: 1, size: 2 })
    t.deepEqual(
      page.content.map(({ version }) => version),
      [3],
    )
    await rejects(t, 'not_found', scripts.version(first.id, 4))
    await scripts.remove(first.id)
    await rejects(t, 'not_found', scripts.versions(first.id, {}))
    await rejects(t, 'not_found', scripts.version(first.id, 1))
  })

  test(`${name} scripts: concurrent changes become consecutive versions, and none is lost`, async (t) => {
    const { scripts } = await open(t)
    const { id } = await scripts.create({ name: 's', type: 'BASH', content: '0' })
    const texts = Array.from({ length: 12 }, (_, index) => `echo ${index}`)
    await Promise.all(texts.map((content) => scripts.update(id, { content })))
    const { content: versions } = await scripts.versions(id, {})
    t.deepEqual(
      versions.map(({ version }) => version),
      Array.from({ length: 13 }, (_, index) => index + 1),
    )
    const kept: string[] = []
    for (const { version } of versions) kept.push((await scripts.version(id, version)).content)
    t.deepEqual(kept.toSorted(), ['0', ...texts].toSorted())
  })

  test(`${name} scripts: names are unique regardless of case, and free again after removal`, async (t) => {
    const { scripts } = await open(t)
    const { id } = await scripts.create({ name: 'Deploy', type: 'BASH', content: 'x' })
    await rejects(t, 'conflict', scripts.create({ name: 'deploy', type: 'PYTHON', content: 'x' }))
    t.deepEqual(await scripts.remove(id), { id })
    for (const work of [scripts.get(id), scripts.update(id, {}), scripts.remove(id)])
      await rejects(t, 'not_found', work)
    t.true((await scripts.create({ name: 'deploy', type: 'PYTHON', content: 'x' })).id > id)
  })

  test(`${name} scripts: a list can be filtered by type, category, tag and search`, async (t) => {
    const { scripts } = await open(t)
    await scripts.create({ name: 'one', type: 'BASH', content: 'x', category: 'ops', tags: ['a', 'b'] })
    await scripts.create({ name: 'two', type: 'PYTHON', content: 'x', description: 'Restarts ONE service' })
    const names = async (query: object) => (await scripts.list(query)).content.map((script) => script.name)
    t.deepEqual(await names({}), ['one', 'two'])
    t.deepEqual(await names({ type: 'PYTHON' }), ['two'])
    t.deepEqual(await names({ category: 'ops' }), ['one'])
    t.deepEqual(await names({ tag: 'b' }), ['one'])
    t.deepEqual(await names({ search: 'one' }), ['one', 'two'])
    t.deepEqual(await names({ page: 1, size: 1 }), ['two'])
    t.deepEqual(await names({ category: 'nosuch' }), [])
  })
}
