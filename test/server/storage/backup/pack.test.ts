import { randomBytes } from 'node:crypto'
import test from 'ava'
import { type BackupEnd, backupFormat } from '../../../../src/server/storage/backup/format.ts'
import { type Part, packBackup } from '../../../../src/server/storage/backup/pack.ts'

const header = {
  format: backupFormat,
  version: '0.0.0',
  createdAt: '2026-11-22T00:00:00.000Z',
  storeId: 'store',
  store: 'directory',
  nouns: [],
  sequence: 1,
  hasOutput: true,
  hasKeys: false,
} as const

test('a backup without a reader is aborted, and memory stays bounded', async (t) => {
  const megabyte = randomBytes(1024 ** 2)
  let taken = 0
  let isReleased = false
  async function* parts(): AsyncGenerator<Part> {
    try {
      for (let n = 0; n < 64; n++) {
        taken++
        yield { name: `output/${n}`, bytes: megabyte }
      }
    } finally {
      isReleased = true
    }
  }
  const ended = new Promise<BackupEnd | Error>((resolve) => {
    const stream = packBackup({ header, parts: parts(), damaged: () => [], ended: resolve }, 300)
    stream.on('error', () => undefined)
  })
  // The watch alone does not keep the process alive.
  const awake = setInterval(() => undefined, 60_000)
  t.teardown(() => clearInterval(awake))
  const end = await ended
  t.regex(end instanceof Error ? end.message : 'it is whole', /its reader stalled/)
  await new Promise((resolve) => setImmediate(resolve))
  t.true(taken < 8, `${taken} MiB were taken`)
  t.true(isReleased)
})
