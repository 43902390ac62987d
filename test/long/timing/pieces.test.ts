import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { piecesOf } from '../../../src/disk/files/open-file.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'

const content = Buffer.from(Array.from({ length: 1000 }, (_, at) => at % 251))

test('an error while one piece is used is thrown to the caller who asks for the next one', async (t) => {
  const path = join(await temporaryDirectory(t), 'file')
  writeFileSync(path, content)
  const fd = openSync(path, 'r')
  const pieces = piecesOf(fd, { pieceBytes: 100 })
  await pieces.next()
  await delay(20)
  closeSync(fd)
  // The second piece is read ahead, the third is not.
  t.deepEqual((await pieces.next()).value, content.subarray(100, 200))
  await delay(20)
  await t.throwsAsync(pieces.next(), { code: 'EBADF' })
})
