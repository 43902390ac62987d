import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import { realDisk } from '../../../../../src/disk/durable.ts'
import { createFileOutputs } from '../../../../../src/server/storage/files/outputs/file-outputs.ts'
import { createLocalHints } from '../../../../../src/server/storage/local-hints.ts'
import type { Outputs } from '../../../../../src/server/storage/ports/outputs.ts'
import { entry, outputsContract, text } from '../../../../contracts/outputs.ts'

async function temporary(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-outputs-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const open = (): Outputs => {
    const outputs = createFileOutputs(directory, createLocalHints(), (error) => t.fail(String(error)))
    t.teardown(() => outputs.close())
    return outputs
  }
  return { open, log: join(directory, 'task', 'output.log'), index: join(directory, 'task', 'output.idx') }
}

outputsContract(test, async (t) => {
  const { open } = await temporary(t)
  const outputs = open()
  const reopen = async () => {
    await outputs.close()
    return open()
  }
  return { outputs, reopen }
})

test('a cursor inside an entry, past the end or of another log never reads a torn entry', async (t) => {
  const outputs = (await temporary(t)).open()
  for (let n = 0; n < 5; n++) await outputs.append('task', entry(n, `${n};`))
  t.is(await text(outputs, 1), '0;1;2;3;4;')
  t.is(await text(outputs, Number.MAX_SAFE_INTEGER), '')
  t.deepEqual(await outputs.read('nosuch', { after: 7, limit: 5 }), { entries: [], next: 7 })
})

const damages: [string, (log: string, index: string) => Promise<void>, string][] = [
  ['a torn last line', (log) => appendFile(log, '{"hostId":1,"stream":"stdo'), '0;1;2;3;4;'],
  ['zeros at the end', (log) => appendFile(log, Buffer.alloc(4096)), '0;1;2;3;4;'],
  ['a line cut short', async (log) => truncate(log, (await stat(log)).size - 3), '0;1;2;3;'],
  ['no index', (_log, index) => rm(index), '0;1;2;3;4;'],
  ['an empty index', (_log, index) => truncate(index, 0), '0;1;2;3;4;'],
  ['an index that stopped early', (_log, index) => truncate(index, 64), '0;1;2;3;4;'],
  ['an index cut within a record', (_log, index) => truncate(index, 70), '0;1;2;3;4;'],
  ['an index of garbage', (_log, index) => writeFile(index, Buffer.alloc(160, 0xa5)), '0;1;2;3;4;'],
  [
    'an index with garbage at its end',
    (_log, index) => appendFile(index, Buffer.alloc(64, 0x11)),
    '0;1;2;3;4;',
  ],
  [
    'an index whose first record is wrong',
    async (_log, index) => {
      const bytes = await readFile(index)
      await writeFile(index, Buffer.concat([Buffer.alloc(32, 0xff), bytes.subarray(32)]))
    },
    '0;1;2;3;4;',
  ],
]
for (const [what, damage, kept] of damages)
  test(`F03 after ${what} the log opens with all whole entries, and continues`, async (t) => {
    const { open, log, index } = await temporary(t)
    const before = open()
    for (let n = 0; n < 5; n++) await before.append('task', entry(n, `${n};`))
    await before.close()
    await damage(log, index)
    const outputs = open()
    t.is(await text(outputs), kept)
    const lastSequence = (await outputs.progress('task')).get(1)?.lastSequence ?? -1
    t.is(lastSequence, kept.length / 2 - 1)
    await outputs.append('task', entry(lastSequence + 1, 'next'))
    await outputs.close()
    t.is(await text(open()), `${kept}next`)
  })

test('a failed write rejects all writes queued behind it, so that no entry follows a gap', async (t) => {
  const outputs = (await temporary(t)).open()
  await outputs.append('task', entry(0, '0;'))
  // A host id too large for the index stands for any write that the disk rejects.
  const refused = outputs.append('task', entry(1, '1;', { hostId: 2 ** 60 }))
  const behind = [outputs.append('task', entry(2, '2;')), outputs.append('task', entry(3, '3;'))]
  const outcomes = await Promise.allSettled([refused, ...behind])
  t.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  )
  t.is(await text(outputs), '0;')
  await outputs.append('task', entry(1, '1;'))
  t.is(await text(outputs), '0;1;')
})

test.serial(
  'F03 after a failed fsync no more output is accepted, because it would follow a gap',
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'rsm-outputs-'))
    t.teardown(() => rm(directory, { recursive: true, force: true }))
    const faults: unknown[] = []
    const outputs = createFileOutputs(directory, createLocalHints(), (error) => faults.push(error))
    t.teardown(() => outputs.close())
    const real = { ...realDisk }
    t.teardown(() => {
      Object.assign(realDisk, real)
    })
    const later: Promise<void>[] = []
    // The second append comes during the fsync of the first; the third after the failure, when the disk seems to work
    // again.
    realDisk.datasync = async () => {
      Object.assign(realDisk, real)
      later.push(outputs.append('task', entry(1, '1;')))
      await setImmediate()
      throw new Error('the disk is broken')
    }
    await t.throwsAsync(outputs.append('task', entry(0, '0;')), { message: /the disk is broken/ })
    later.push(outputs.append('task', entry(2, '2;')))
    const outcomes = await Promise.allSettled(later)
    t.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    t.is(faults.length, 1)
  },
)

test('reading many logs keeps few files open, and none are left open at the end', async (t) => {
  const { open } = await temporary(t)
  const outputs = open()
  for (let n = 0; n < 100; n++) {
    await outputs.append(`task${n}`, entry(0, 'x'))
    await outputs.finish(`task${n}`)
  }
  for (let n = 0; n < 100; n++)
    t.is((await outputs.read(`task${n}`, { after: 0, limit: 1 })).entries.length, 1)
  await outputs.close()
})
