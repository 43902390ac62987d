import { createHash } from 'node:crypto'
import { RsmError } from '../../../core/errors.ts'
import type { Files } from '../ports/files.ts'
import type { FileRecord } from '../records/file.ts'
import type { Items } from './kinds.ts'

/**
 * The bytes of files, each behind its beginning; those that a backup has left out are passed over. Errors: `gone` where they are
 * not what they were.
 */
export async function* readFiles(
  files: Files,
  records: AsyncIterable<FileRecord> | Iterable<FileRecord>,
): AsyncGenerator<Items['files']> {
  const there = new Set(await files.ids())
  for await (const { id, sha256, isComplete, sealedKey } of records) {
    if (!there.has(id)) continue
    const bytes = await files.size(id)
    const content = isComplete && sealedKey === null ? sha256 : null
    yield { id, bytes, isComplete, content }
    const hash = createHash('sha256')
    for await (const piece of files.read(id, 0, bytes)) {
      if (content !== null) hash.update(piece)
      yield piece
    }
    if (content !== null && hash.digest('hex') !== content)
      throw new RsmError('gone', `file ${id} is damaged: its bytes are not what was uploaded`)
  }
}

export async function writeFiles(files: Files, items: AsyncIterable<Items['files']>): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  let next = await iterator.next()
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (;;) {
      next = await iterator.next()
      if (next.done || !(next.value instanceof Uint8Array)) return
      yield next.value
    }
  }
  while (!next.done) {
    if (next.value instanceof Uint8Array) throw new Error('bytes come behind the beginning of their file')
    const { id, isComplete, content } = next.value
    await files.append(id, 0, bytes())
    if (isComplete) await files.finish(id, content)
  }
}
