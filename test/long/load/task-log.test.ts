import test from 'ava'
import { createFileOutputs } from '../../../src/server/storage/files/outputs/file-outputs.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import type { Outputs } from '../../../src/server/storage/ports/outputs.ts'
import { entry } from '../../contracts/outputs.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'

test('any cursor in a log of 100,000 entries is found quickly, even right after a restart', async (t) => {
  const directory = await temporaryDirectory(t)
  const open = (): Outputs => {
    const outputs = createFileOutputs(directory, createLocalHints(), (error) => t.fail(String(error)))
    t.teardown(() => outputs.close())
    return outputs
  }
  const outputs = open()
  const count = 100_000
  for (let from = 0; from < count; from += 5000)
    await Promise.all(
      Array.from({ length: 5000 }, (_, n) => outputs.append('task', entry(from + n, `${from + n};`))),
    )
  await outputs.close()
  const again = open()
  const before = performance.now()
  const after = await again.cursorBeforeLast('task', 10, {})
  const { entries } = await again.read('task', { after, limit: 500 })
  t.deepEqual(
    entries.map(({ sequence }) => sequence),
    Array.from({ length: 10 }, (_, n) => count - 10 + n),
  )
  for (const cursor of [0, after >> 1, after >> 2]) {
    const read = await again.read('task', { after: cursor, limit: 2 })
    t.is((read.entries[1]?.sequence ?? 0) - (read.entries[0]?.sequence ?? 0), 1)
    t.true((read.entries[0]?.id ?? 0) > cursor)
  }
  t.true(performance.now() - before < 1000)
  t.is((await again.progress('task')).get(1)?.lastSequence, count - 1)
})
