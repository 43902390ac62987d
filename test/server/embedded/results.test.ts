import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { createFileResults } from '../../../src/server/embedded/results.ts'
import { resultsContract } from '../../contracts/results.ts'
import { resultOf } from '../../fixtures/fake-server.ts'

async function directoryFor(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-results-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

resultsContract(test, async (t) => {
  const directory = await directoryFor(t)
  return { results: createFileResults(directory), reopen: async () => createFileResults(directory) }
})

test('a task that ended before results told what held their processes together reads as not known', async (t) => {
  const directory = await directoryFor(t)
  const { containment: _, survivors: __, ...older } = resultOf('web1')
  await mkdir(join(directory, 'old'))
  await writeFile(join(directory, 'old', 'task.json'), JSON.stringify({ script: 'true', results: [older] }))
  const archived = await createFileResults(directory).read('old')
  t.deepEqual(archived?.results, [{ ...older, containment: null, survivors: [], changed: null }])
})
