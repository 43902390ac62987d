import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { LocalTemporaries } from '../../../src/cli/files/receive.ts'
import { OpenDirectory } from '../../../src/disk/files/open-directory.ts'
import { topName, treeOf } from '../../../src/disk/files/pack-tree.ts'
import { putTree } from '../../../src/disk/files/put-tree.ts'
import type { Placing } from '../../../src/disk/files/settle.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

const unset = { uid: null, gid: null, mode: undefined, sourceMode: undefined }

/** Packs the content of `source` and puts it into `target`; `meanwhile` runs after the first read of a large file. */
async function copied(
  t: ExecutionContext,
  source: string,
  target: string,
  meanwhile = () => {},
): Promise<{ changed: string[]; said: string[] }> {
  const directory = OpenDirectory.open(source)
  const workspace = new LocalTemporaries('task', () => {})
  const changed: string[] = []
  const said: string[] = []
  const spool = join(temporaryDirectory(t), 'spool')
  const pieces: Buffer[] = []
  const roots = [{ directory, name: null, tarName: topName }]
  for await (const piece of treeOf(roots, { follow: false, changedAt: (path) => changed.push(path) })) {
    if (piece.length > 65_536) meanwhile()
    pieces.push(piece)
  }
  writeFileSync(spool, Buffer.concat(pieces))
  const fd = openSync(spool, 'r')
  const placing: Placing = {
    copy: { path: target },
    desired: unset,
    workspace,
    say: (line) => said.push(line),
    bare: [],
  }
  try {
    await putTree(placing, fd)
  } finally {
    closeSync(fd)
    directory.close()
    workspace.close()
  }
  return { changed, said }
}

const bytes = (...parts: (string | number)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.of(part))))
const within = (directory: string, name: Buffer) => Buffer.concat([Buffer.from(`${directory}/`), name])

test('names and link targets arrive byte for byte, in any encoding', async (t) => {
  const [source, target] = [join(temporaryDirectory(t), 'source'), join(temporaryDirectory(t), 'target')]
  mkdirSync(source)
  const names = [
    bytes('caf', 0xe9),
    bytes('caf', 0xe8),
    bytes(0xff, 0xc3, 0xfe, 0xed, 0xb3, 0xa9, 0xc0, 0xaf, 'ü'),
    bytes('lost \ufffd'),
    bytes('emoji 🙂', 0xf0, 0x9f),
    bytes('plain'),
  ]
  for (const name of names) writeFileSync(within(source, name), name)
  const directory = bytes('d', 0xe4, 'r')
  mkdirSync(within(source, directory))
  writeFileSync(Buffer.concat([within(source, directory), bytes('/f', 0xfc)]), 'deep')
  symlinkSync(bytes('to/caf', 0xe9), join(source, 'link'))
  const { said, changed } = await copied(t, source, target)
  const listed = (at: string) =>
    readdirSync(at, { encoding: 'buffer' })
      .map((name) => name.toString('hex'))
      .sort()
  t.deepEqual(listed(target), listed(source))
  for (const name of names) t.true(readFileSync(within(target, name)).equals(name))
  t.is(readFileSync(Buffer.concat([within(target, directory), bytes('/f', 0xfc)]), 'utf8'), 'deep')
  t.true(readlinkSync(join(target, 'link'), { encoding: 'buffer' }).equals(bytes('to/caf', 0xe9)))
  t.true(said.length > names.length)
  t.deepEqual(changed, [])
  t.deepEqual((await copied(t, source, target)).said, [], 'nothing is missing')
})

test('a large file truncated while its tree is packed arrives as far as it was read, and is reported', async (t) => {
  const [source, target] = [join(temporaryDirectory(t), 'source'), join(temporaryDirectory(t), 'target')]
  mkdirSync(source)
  const log = Buffer.alloc(12 * 1024 * 1024, 'a line of a log\n')
  writeFileSync(join(source, 'a.log'), log)
  writeFileSync(join(source, 'b'), 'next')
  const { changed } = await copied(t, source, target, () => truncateSync(join(source, 'a.log')))
  t.deepEqual(changed, [join(source, 'a.log')])
  const came = readFileSync(join(target, 'a.log'))
  t.true(came.length < log.length)
  t.true(came.equals(log.subarray(0, came.length)))
  t.is(readFileSync(join(target, 'b'), 'utf8'), 'next')
  t.deepEqual(readdirSync(target), ['a.log', 'b'])
})
