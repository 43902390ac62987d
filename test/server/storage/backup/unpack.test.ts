import { randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import test from 'ava'
import { backupFormat } from '../../../../src/server/storage/backup/format.ts'
import { packBackup } from '../../../../src/server/storage/backup/pack.ts'
import { unpackBackup } from '../../../../src/server/storage/backup/unpack.ts'

test('a full disk closes the source of a backup', async (t) => {
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
  async function* parts() {
    for (let n = 1; n <= 8; n++) yield { name: `output/00000${n}`, bytes: randomBytes(1024 ** 2) }
  }
  const backup = await buffer(
    packBackup({ header, parts: parts(), damaged: () => [], ended: () => undefined }),
  )
  let close: (() => void) | undefined
  const isClosed = new Promise<void>((resolve) => {
    close = resolve
  })
  async function* source() {
    try {
      for (let at = 0; at < backup.length; at += 65_536) yield backup.subarray(at, at + 65_536)
    } finally {
      close?.()
    }
  }
  const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC', errno: -28 })
  await t.throwsAsync(
    unpackBackup(source(), () => Promise.reject(full)),
    { is: full },
  )
  await isClosed
  t.pass()
})
