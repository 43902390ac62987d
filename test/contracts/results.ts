import type { ExecutionContext, TestFn } from 'ava'
import type { Results } from '../../src/server/storage/ports/outputs.ts'
import { resultOf } from '../fixtures/fake-server.ts'

/** Suite for every implementation of Results. */
export function resultsContract(
  test: TestFn,
  open: (t: ExecutionContext) => Promise<{ results: Results; reopen: () => Promise<Results> }>,
): void {
  test('the results of a finished task are read back in full, after a restart too; other tasks have none', async (t) => {
    const { results, reopen } = await open(t)
    const left = { script: 'echo "ä"\n', results: [resultOf('web1'), resultOf('web2')] }
    await results.write('t1', left)
    for (const opened of [results, await reopen()]) {
      t.deepEqual(await opened.read('t1'), left)
      t.is(await opened.read('t2'), null)
      t.deepEqual(await opened.list(), ['t1'])
    }
  })

  test('results that are written again, as with a late result, replace the previous ones', async (t) => {
    const { results, reopen } = await open(t)
    await results.write('t1', { script: 'true', results: [resultOf('web1')] })
    t.is((await results.read('t1'))?.results[0]?.error, null)
    const amended = { script: 'true', results: [{ ...resultOf('web1'), error: 'late' }] }
    await results.write('t1', amended)
    t.deepEqual(await results.read('t1'), amended)
    t.deepEqual(await (await reopen()).read('t1'), amended)
  })

  test('`forget` removes all results of a task', async (t) => {
    const { results, reopen } = await open(t)
    for (const id of ['t1', 't2']) await results.write(id, { script: '', results: [] })
    await results.forget('t1')
    await results.forget('t1')
    for (const opened of [results, await reopen()]) {
      t.is(await opened.read('t1'), null)
      t.deepEqual(await opened.list(), ['t2'])
    }
  })

  test('A04 results that are moved aside are no longer listed', async (t) => {
    const { results } = await open(t)
    for (const id of ['t1', 't2', 't3']) await results.write(id, { script: '', results: [] })
    await results.orphans.moveAside(['t1', 't3'], Date.now())
    t.deepEqual(await results.list(), ['t2'])
    t.is(await results.read('t1'), null)
  })
}
