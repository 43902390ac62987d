import test from 'ava'
import { openDirectoryFiles } from '../../../src/server/storage/files/directory-files.ts'
import type { FileRecord } from '../../../src/server/storage/records/file.ts'
import { type Damage, readFiles, writeFiles } from '../../../src/server/storage/streams.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { sha256Of } from '../../helpers/clients/files.ts'

async function* of(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

const fileOf = (id: string, text: string): FileRecord => ({
  id,
  userId: 1,
  size: text.length,
  sha256: sha256Of(Buffer.from(text)),
  isComplete: true,
  sealedKey: null,
  createdAt: '',
  expiresAt: '',
  taskId: null,
})

test('a store can be moved without bytes that a backup omitted, but not with damaged ones', async (t) => {
  const [from, to] = [temporaryDirectory(t), temporaryDirectory(t)]
  const files = await openDirectoryFiles(from)
  await files.append('here', 0, of('some text'))
  await files.finish('here', sha256Of(Buffer.from('some text')))
  const moved = await openDirectoryFiles(to)
  const damaged = ({ of }: Damage) => {
    throw new Error(`${of} is damaged`)
  }
  const records = [fileOf('gone', 'other text'), fileOf('here', 'some text')]
  await writeFiles(moved, readFiles(files, records, damaged))
  t.deepEqual(await moved.ids(), ['here'])
  t.is(await moved.size('here'), 9)
  await t.throwsAsync(
    async () => {
      for await (const _ of readFiles(files, [fileOf('here', 'SOME TEXT')], damaged));
    },
    { message: /file here is damaged/ },
  )
})
