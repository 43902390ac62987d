import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { openDirectoryFiles } from '../../../../src/server/storage/files/directory-files.ts'
import { WrongOffset } from '../../../../src/server/storage/ports/files.ts'
import { filesContract } from '../../../contracts/files.ts'
import { temporaryDirectory } from '../../../fixtures/rsm.ts'

/** Bytes of all files below a directory; a file with several names counts once. */
async function roomOf(directory: string): Promise<number> {
  const sizes = new Map<number, number>()
  for (const name of await readdir(directory, { recursive: true })) {
    const found = await stat(join(directory, name))
    if (found.isFile()) sizes.set(found.ino, found.size)
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0)
}

filesContract(test, async (t) => {
  const directory = temporaryDirectory(t)
  return { files: await openDirectoryFiles(directory), room: () => roomOf(directory) }
})

async function* of(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

test('temporary names and orphaned content of a killed server are removed at the next start', async (t) => {
  const directory = temporaryDirectory(t)
  const former = await openDirectoryFiles(directory)
  for (const id of ['one', 'two']) {
    await former.append(id, 0, of('same'))
    await former.finish(id, 'sum')
  }
  await writeFile(join(directory, 'content', 'of-none'), 'left')
  await writeFile(join(directory, `one.1-2.tmp`), 'left')
  const files = await openDirectoryFiles(directory)
  t.deepEqual((await files.ids()).toSorted(), ['one', 'two'])
  await files.remove('one')
  t.deepEqual((await readdir(directory, { recursive: true })).toSorted(), ['content', 'content/sum', 'two'])
  await files.remove('two')
  t.deepEqual((await readdir(directory, { recursive: true })).toSorted(), ['content'])
})

test('during an append, the size is the number of bytes already durable', async (t) => {
  const files = await openDirectoryFiles(temporaryDirectory(t))
  await files.append('one', 0, of('abc'))
  const seen: number[] = []
  async function* slowly(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('de')
    seen.push(await files.size('one'))
    const refused = await t.throwsAsync(files.append('one', 5, of('x')), { instanceOf: WrongOffset })
    seen.push(refused?.offset ?? 0)
    yield Buffer.from('f')
  }
  t.is(await files.append('one', 3, slowly()), 6)
  t.deepEqual(seen, [3, 3])
  t.is(await files.size('one'), 6)
})

test('finishing files with the same content while all are listed leaves one content file', async (t) => {
  const directory = temporaryDirectory(t)
  const files = await openDirectoryFiles(directory)
  const ids = Array.from({ length: 30 }, (_, n) => `file-${n}`)
  for (const id of ids) await files.append(id, 0, of('same'))
  const listing = [1, 2].map(async () => {
    for (let nth = 0; nth < 2 * ids.length; nth += 1) await files.ids()
  })
  await Promise.all([...listing, ...ids.map((id) => files.finish(id, 'sum'))])
  t.is((await stat(join(directory, 'content', 'sum'))).nlink, ids.length + 1)
})
