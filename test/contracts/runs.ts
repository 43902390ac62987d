import type { ExecutionContext, TestFn } from 'ava'
import type { RunMark } from '../../src/core/protocol/messages.ts'
import type { Runs } from '../../src/server/storage/ports/cluster.ts'

/** A start of a server that notes the progress of the store only on request. */
export interface Start {
  runs: Runs
  /** Acknowledges one write. */
  write: () => Promise<void>
  /** Ends this start. */
  end: () => Promise<void>
}

async function markOf(runs: Runs): Promise<RunMark> {
  const mark = await runs.mark()
  if (mark === null) throw new Error('this start is not noted')
  return mark
}

/** Suite for every implementation of Runs; `start` starts a server on the same store after the previous one has ended. */
export function runsContract(
  test: TestFn,
  open: (t: ExecutionContext) => Promise<{ start: () => Promise<Start> }>,
): void {
  test('A02 P49 a store knows the marks of all its starts up to their ends, and no later ones', async (t) => {
    const { start } = await open(t)
    const marks: RunMark[] = []
    for (let starts = 1; starts <= 3; starts++) {
      const { runs, write, end } = await start()
      await write()
      const mark = await markOf(runs)
      t.is(mark.run, runs.id)
      marks.push(mark)
      for (const one of marks) {
        t.true(await runs.knows(one))
        t.true(await runs.knows({ ...one, sequence: 0 }))
        t.false(await runs.knows({ ...one, sequence: one.sequence + 1 }))
      }
      t.false(await runs.knows({ run: 'another \0', sequence: 0 }))
      await end()
    }
    t.is(new Set(marks.map(({ run }) => run)).size, 3)
  })

  test('A02 P49 a mark is higher than those handed out before a write, and is the recent one', async (t) => {
    const { runs, write, end } = await (await open(t)).start()
    const before = await markOf(runs)
    await write()
    const after = await markOf(runs)
    t.true(after.sequence > before.sequence)
    t.deepEqual(runs.recent(), after)
    t.is(runs.sequence, after.sequence)
    t.true(await runs.knows(before))
    await end()
  })
}
