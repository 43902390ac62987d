import { closeSync, openSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { piecesOf } from '../../src/disk/files/open-file.ts'
import { temporaryDirectory } from '../helpers/agents/agent.ts'

const content = Buffer.from(Array.from({ length: 1000 }, (_, at) => at % 251))

test.serial('a piece stays valid until the next one is requested, and all come in order', async (t) => {
  const path = join(await temporaryDirectory(t), 'file')
  writeFileSync(path, content)
  const fd = openSync(path, 'r')
  const came: Buffer[] = []
  for await (const piece of piecesOf(fd, { from: 3, to: 990, pieceBytes: 64, isReused: true })) {
    // By then, the following piece has been read.
    await stat(path)
    came.push(Buffer.from(piece))
  }
  t.deepEqual(Buffer.concat(came), content.subarray(3, 990))
  closeSync(fd)
})

test.serial('a file shorter than the requested range is read to its end', async (t) => {
  const path = join(await temporaryDirectory(t), 'file')
  writeFileSync(path, content)
  const fd = openSync(path, 'r')
  const came: Buffer[] = []
  for await (const piece of piecesOf(fd, { to: 2000, pieceBytes: 300 })) came.push(piece)
  t.deepEqual(Buffer.concat(came), content)
  closeSync(fd)
})
