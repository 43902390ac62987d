import { createHash } from 'node:crypto'
import type { Files } from '../ports/files.ts'
import type { FileRecord } from '../records/file.ts'
import { blobsOf } from './bytes.ts'
import type { Items, OnDamage } from './kinds.ts'

/** Bytes of files, each after its blob item; skips files that a backup omitted. */
export async function* readFiles(
  files: Files,
  records: AsyncIterable<FileRecord> | Iterable<FileRecord>,
  damaged: OnDamage,
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
      damaged({ code: 'file', of: `file ${id}`, fault: 'its bytes differ from the upload', path: id })
  }
}

export async function writeFiles(files: Files, items: AsyncIterable<Items['files']>): Promise<void> {
  for await (const { blob, bytes } of blobsOf(items)) {
    await files.append(blob.id, 0, bytes)
    if (blob.isComplete) await files.finish(blob.id, blob.content)
  }
}
