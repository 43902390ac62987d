import { randomBytes } from 'node:crypto'
import test from 'ava'
import { type BackupEnd, backupFormat } from '../../../../../src/server/storage/files/backup/format.ts'
import { packBackup } from '../../../../../src/server/storage/files/backup/pack.ts'
import type { Part } from '../../../../../src/server/storage/files/backup/parts.ts'

const header = {
  format: backupFormat,
  version: '0.0.0',
  createdAt: '2026-11-22T00:00:00.000Z',
  storeId: 'store',
  storeFormat: 1,
  sequence: 1,
  hasOutput: true,
  hasKeys: false,
}

test('a backup that nobody reads breaks off, in bounded memory', async (t) => {
  const megabyte = randomBytes(1024 ** 2)
  let taken = 0
  let isReleased = false
  function* bytes(): Generator<Uint8Array> {
    try {
      for (let n = 0; n < 64; n++) {
        taken++
        yield megabyte
      }
    } finally {
      isReleased = true
    }
  }
  async function* parts(): AsyncGenerator<Part> {
    yield { name: 'tasks/1/output.log', size: 64 * megabyte.length, bytes: bytes() }
  }
  const ended = new Promise<BackupEnd | Error>((resolve) => {
    const stream = packBackup({ header, parts: parts(), damaged: () => [], ended: resolve }, 300)
    stream.on('error', () => undefined)
  })
  // The watch alone keeps no process alive.
  const awake = setInterval(() => undefined, 60_000)
  t.teardown(() => clearInterval(awake))
  const end = await ended
  t.regex(end instanceof Error ? end.message : 'it is whole', /its reader stopped for too long/)
  await new Promise((resolve) => setImmediate(resolve))
  t.true(taken < 8, `${taken} MiB were taken`)
  t.true(isReleased)
})
