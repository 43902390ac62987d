import type { ExecutionContext, TestFn } from 'ava'
import type { Results } from '../../src/server/storage/ports/outputs.ts'
import { resultOf } from '../fixtures/fake-server.ts'

/** What every implementation of Results does. */
export function resultsContract(
  test: TestFn,
  open: (t: ExecutionContext) => Promise<{ results: Results; reopen: () => Promise<Results> }>,
): void {
  test('what a finished task leaves is read back whole, after a restart too; of others there is nothing', async (t) => {
    const { results, reopen } = await open(t)
    const left = { script: 'echo "ä"\n', results: [resultOf('web1'), resultOf('web2')] }
    await results.write('t1', left)
    for (const opened of [results, await reopen()]) {
      t.deepEqual(await opened.read('t1'), left)
      t.is(await opened.read('t2'), null)
      t.deepEqual(await opened.list(), ['t1'])
    }
  })

  test('what is written again takes the place of what was: a late result is known so', async (t) => {
    const { results, reopen } = await open(t)
    await results.write('t1', { script: 'true', results: [resultOf('web1')] })
    t.is((await results.read('t1'))?.results[0]?.error, null)
    const amended = { script: 'true', results: [{ ...resultOf('web1'), error: 'late' }] }
    await results.write('t1', amended)
    t.deepEqual(await results.read('t1'), amended)
    t.deepEqual(await (await reopen()).read('t1'), amended)
  })

  test('of a task that is forgotten nothing is left', async (t) => {
    const { results, reopen } = await open(t)
    for (const id of ['t1', 't2']) await results.write(id, { script: '', results: [] })
    await results.forget('t1')
    await results.forget('t1')
    for (const opened of [results, await reopen()]) {
      t.is(await opened.read('t1'), null)
      t.deepEqual(await opened.list(), ['t2'])
    }
  })

  test('A04 what is moved aside is listed no more', async (t) => {
    const { results } = await open(t)
    for (const id of ['t1', 't2', 't3']) await results.write(id, { script: '', results: [] })
    await results.orphans.moveAside(['t1', 't3'], Date.now())
    t.deepEqual(await results.list(), ['t2'])
    t.is(await results.read('t1'), null)
  })
}
