import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { copying } from '../../helpers/audit/copying.ts'
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'
import { until } from '../../helpers/until.ts'

async function world(t: ExecutionContext) {
  const home = temporaryDirectory(t)
  const linesOf = async (path: string) => (await readFile(path, 'utf8')).split('\n').slice(0, -1)
  return { ...(await copying(t)), home, linesOf }
}

test('each new entry is copied within a second', async (t) => {
  const { append, copyTo, upToDate, linesOf, home } = await world(t)
  const file = join(home, 'audit.jsonl')
  await append(10)
  await upToDate(copyTo(`file:${file}`))
  await append(1)
  const began = performance.now()
  await until('the new entry is there', async () => (await linesOf(file)).length === 12)
  t.true(performance.now() - began < 1_500)
})

test('what keeps a file from being written is said once, then tried again, and nothing is lost', async (t) => {
  const { append, copyTo, upToDate, lines, linesOf, said, home } = await world(t)
  const file = join(home, 'later', 'audit.jsonl')
  await append(3)
  const copy = copyTo(`file:${file}`)
  await until('it is refused', () => copy.status.error !== null)
  t.regex(copy.status.error ?? '', /no directory can be made there/)
  await until('it waits', () => copy.status.behindSeconds >= 2)
  t.like(copy.status, { copied: 0, waiting: 4 })
  await mkdir(join(home, 'later'))
  await append(3)
  await upToDate(copy)
  t.deepEqual(await linesOf(file), await lines())
  t.deepEqual(said, [
    'the audit copy is not taken; it is tried again and again',
    'the audit copy is taken again',
  ])
})

const mounted = mountSmallDisk(256 * 1024)
test.after.always(() => mounted?.unmount())
// Only a process that may mount can have a small disk of its own to fill: root, outside a plain container.
const whereMountable = mounted === null ? test.skip : test

whereMountable(
  'F04 a full disk holds a copy up, which has every entry once there is room, and nothing torn',
  async (t) => {
    const { append, copyTo, lines, linesOf, log, said, upToDate } = await world(t)
    const disk = String(mounted?.directory)
    const file = join(disk, 'audit.jsonl')
    t.teardown(() => rm(file, { force: true }))
    const ballast = join(disk, 'ballast')
    await writeFile(ballast, Buffer.alloc(200 * 1024))
    await append(500)
    const copy = copyTo(`file:${file}`)
    await until('it is refused', () => copy.status.error !== null)
    t.is(copy.status.error, 'the disk is full')
    t.is(log.refusal, null)
    await until('it is tried again', () => copy.status.behindSeconds >= 3)
    t.is((await stat(file)).size, 0)
    await rm(ballast)
    await upToDate(copy)
    t.deepEqual(await linesOf(file), await lines())
    t.is(said.filter((message) => message.includes('is not taken')).length, 1)
  },
)
