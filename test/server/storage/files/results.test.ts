import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { createFileResults } from '../../../../src/server/storage/files/results.ts'
import { resultsContract } from '../../../contracts/results.ts'
import { resultOf } from '../../../fixtures/fake-server.ts'

async function directoryFor(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-results-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

resultsContract(test, async (t) => {
  const directory = await directoryFor(t)
  return { results: createFileResults(directory), reopen: async () => createFileResults(directory) }
})

test("concurrent reads of a task's results read its file once", async (t) => {
  const directory = await directoryFor(t)
  await createFileResults(directory).write('t1', { script: 'true', results: [resultOf('web1')] })
  const results = createFileResults(directory)
  const [first, second] = await Promise.all([results.read('t1'), results.read('t1')])
  t.is(first, second)
})

test('results written while older ones are read are kept', async (t) => {
  const directory = await directoryFor(t)
  const older = { script: 'true', results: [resultOf('web1')] }
  await createFileResults(directory).write('t1', older)
  const results = createFileResults(directory)
  const newer = { script: 'true', results: [{ ...resultOf('web1'), error: 'late' }] }
  await Promise.all([results.read('t1'), results.write('t1', newer)])
  t.deepEqual(await results.read('t1'), newer)
})

test('a task that ended before results recorded containment reads as unknown', async (t) => {
  const directory = await directoryFor(t)
  const { containment: _, survivors: __, ...older } = resultOf('web1')
  await mkdir(join(directory, 'old'))
  await writeFile(join(directory, 'old', 'task.json'), JSON.stringify({ script: 'true', results: [older] }))
  const archived = await createFileResults(directory).read('old')
  t.deepEqual(archived?.results, [{ ...older, containment: null, survivors: [], changed: null }])
})
