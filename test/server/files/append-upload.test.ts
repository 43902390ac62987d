import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { startInsides } from '../../helpers/servers/services.ts'

test('an upload removed before its end is reported as not found, and leaves no bytes', async (t) => {
  const { context, directory } = await startInsides(t)
  const { files } = context
  const begun = await files.begin({ userId: 1, size: null, sha256: null, isSecret: false })
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('one')
    await files.remove(begun)
    yield Buffer.from('two')
  }
  const arrival = { bytes: bytes(), length: null, offset: 0, end: true }
  await t.throwsAsync(files.add(begun, arrival), { code: 'not_found' })
  t.deepEqual(await readdir(join(directory, 'files'), { recursive: true }), ['content'])
})
