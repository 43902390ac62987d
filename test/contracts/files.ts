import { randomBytes } from 'node:crypto'
import type { ExecutionContext, TestFn } from 'ava'
import { seal, open as unseal } from '../../src/core/sealing.ts'
import { type BlobCodec, createBlobCodec } from '../../src/server/files/blob-codec.ts'
import { type Files, WrongOffset } from '../../src/server/storage/ports/files.ts'
import type { FileRecord } from '../../src/server/storage/records/file.ts'

/** Yields bytes in pieces, then throws the error, if given. */
async function* inPieces(pieces: readonly Uint8Array[], error?: Error): AsyncGenerator<Uint8Array> {
  yield* pieces
  if (error) throw error
}

const text = (...pieces: string[]) => inPieces(pieces.map((piece) => Buffer.from(piece)))

async function whole(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of bytes) pieces.push(Uint8Array.from(piece))
  return Buffer.concat(pieces)
}

const read = async (files: Files, id: string, from = 0, to?: number): Promise<Buffer> =>
  whole(files.read(id, from, to ?? (await files.size(id))))

const secretFile = (contents: BlobCodec, id: string): FileRecord => ({
  id,
  userId: 1,
  size: null,
  sha256: null,
  isComplete: false,
  sealedKey: contents.newKey(id),
  createdAt: '',
  expiresAt: '',
  taskId: null,
})

/** Suite for every implementation of Files; `room`: bytes that all files take together. */
export function filesContract(
  test: TestFn,
  open: (t: ExecutionContext) => Promise<{ files: Files; room: () => Promise<number> }>,
): void {
  test('appended bytes can be read from any offset to any other', async (t) => {
    const { files } = await open(t)
    t.is(await files.size('one'), 0)
    t.is(await files.append('one', 0, text('abc', '', 'def')), 6)
    t.is(await files.append('one', 6, text('ghi')), 9)
    t.is(await files.size('one'), 9)
    t.is((await read(files, 'one')).toString(), 'abcdefghi')
    for (const [from, to, expected] of [
      [0, 0, ''],
      [0, 1, 'a'],
      [4, 8, 'efgh'],
      [8, 9, 'i'],
      [9, 9, ''],
    ] as const)
      t.is((await read(files, 'one', from, to)).toString(), expected)
    await files.finish('one', null)
    t.is((await read(files, 'one')).toString(), 'abcdefghi')
  })

  test('bytes received before a connection is cut stay, and the rest is appended to them', async (t) => {
    const { files } = await open(t)
    const bytes = randomBytes(1024 * 1024 + 1017)
    const quarter = Math.ceil(bytes.length / 4)
    const cut = new Error('cut')
    let at = 0
    while (at < bytes.length) {
      const piece = bytes.subarray(at, at + quarter)
      await t.throwsAsync(files.append('one', at, inPieces([piece], cut)), { is: cut })
      at += piece.length
      t.is(await files.size('one'), at)
    }
    t.true((await read(files, 'one')).equals(bytes))
    t.deepEqual(
      await read(files, 'one', 1024 * 1024 - 1, bytes.length - 1),
      bytes.subarray(1024 * 1024 - 1, -1),
    )
  })

  test('bytes for another offset, and those of a second writer, change nothing', async (t) => {
    const { files } = await open(t)
    await files.append('one', 0, text('abc'))
    for (const offset of [0, 2, 4])
      t.is(
        (await t.throwsAsync(files.append('one', offset, text('x')), { instanceOf: WrongOffset }))?.offset,
        3,
      )
    t.is((await t.throwsAsync(files.append('two', 1, text('x')), { instanceOf: WrongOffset }))?.offset, 0)
    const both = await Promise.allSettled(['d', 'e'].map((piece) => files.append('one', 3, text(piece))))
    t.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    t.is((await read(files, 'one')).length, 4)
  })

  test('bytes cut from the end of a file are gone, and the next ones are appended to the rest', async (t) => {
    const { files, room } = await open(t)
    const bytes = randomBytes(3 * 1024 * 1024 + 1017)
    await files.append('one', 0, inPieces([bytes]))
    let end = bytes.length
    for (const to of [end, end - 17, 2 * 1024 * 1024 + 1, 2 * 1024 * 1024, 1000, 0]) {
      await files.cut('one', end, to)
      end = to
      t.is(await files.size('one'), to)
      t.is(await room(), to)
      t.true((await read(files, 'one')).equals(bytes.subarray(0, to)))
      const fault = await t.throwsAsync(files.cut('one', to + 1, 0), { instanceOf: WrongOffset })
      t.is(fault?.offset, to)
    }
    t.is(await files.append('one', 0, inPieces([bytes])), bytes.length)
    t.true((await read(files, 'one')).equals(bytes))
  })

  test('a secret upload whose store was killed within a chunk continues at that chunk, and is complete', async (t) => {
    const { files } = await open(t)
    const key = randomBytes(32)
    const contents = createBlobCodec(files, {
      seal: (text, context) => seal(text, key, context, randomBytes),
      open: (text, context) => unseal(text, key, context),
    })
    const bytes = randomBytes(300_000)
    const at = 3 * 65_536
    for (const torn of [1, 28, 65_563]) {
      const file = secretFile(contents, `torn-${torn}`)
      t.is(await contents.append(file, 0, inPieces([bytes.subarray(0, 200_000)]), () => false), at)
      await files.append(file.id, await files.size(file.id), inPieces([randomBytes(torn)]))
      t.is(await contents.size(file), at)
      for (const offset of [at - 65_536, at + 1, 200_000]) {
        const adding = contents.append(file, offset, inPieces([bytes.subarray(offset)]), () => true)
        t.is((await t.throwsAsync(adding, { instanceOf: WrongOffset }))?.offset, at)
      }
      const rest = inPieces([bytes.subarray(at)])
      t.is(await contents.append(file, at, rest, (size) => size === bytes.length), bytes.length)
      t.true((await whole(contents.read(file, 0, bytes.length))).equals(bytes))
    }
  })

  test('equal finished files share their storage until the last one is removed; others share nothing', async (t) => {
    const { files, room } = await open(t)
    const bytes = randomBytes(64 * 1024)
    for (const id of ['one', 'two', 'three']) {
      await files.append(id, 0, inPieces([bytes]))
      await files.finish(id, id === 'three' ? null : 'sum')
      await files.finish(id, id === 'three' ? null : 'sum')
    }
    t.is(await room(), 2 * bytes.length)
    t.deepEqual((await files.ids()).toSorted(), ['one', 'three', 'two'])
    await files.remove('one')
    t.is(await room(), 2 * bytes.length)
    t.deepEqual(await read(files, 'two'), bytes)
    await files.remove('three')
    t.is(await room(), bytes.length)
    await files.remove('two')
    await files.remove('two')
    t.is(await room(), 0)
    t.deepEqual(await files.ids(), [])
    await files.append('four', 0, inPieces([bytes]))
    await files.finish('four', 'sum')
    t.deepEqual(await read(files, 'four'), bytes)
  })

  test('an empty file exists; reading a missing file or missing bytes fails with `gone`', async (t) => {
    const { files } = await open(t)
    t.is(await files.append('one', 0, text()), 0)
    await files.finish('one', 'nothing')
    t.deepEqual(await files.ids(), ['one'])
    t.is((await read(files, 'one')).length, 0)
    await files.finish('two', null)
    t.deepEqual((await files.ids()).toSorted(), ['one', 'two'])
    await t.throwsAsync(read(files, 'none', 0, 1), { code: 'gone' })
    await t.throwsAsync(read(files, 'one', 0, 1), { code: 'gone' })
  })
}
