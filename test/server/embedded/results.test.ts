import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { createFileResults } from '../../../src/server/embedded/results.ts'
import { resultOf } from '../../fixtures/fake-server.ts'

test('a task that ended before results told what held their processes together reads as not known', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-archive-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const { containment: _, survivors: __, ...older } = resultOf('web1')
  await mkdir(join(directory, 'old'))
  await writeFile(join(directory, 'old', 'task.json'), JSON.stringify({ script: 'true', results: [older] }))
  const archived = await createFileResults(directory).read('old')
  t.deepEqual(archived?.results, [{ ...older, containment: null, survivors: [] }])
})
