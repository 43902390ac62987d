import { createHash } from 'node:crypto'
import { pipeline, Readable } from 'node:stream'
import { extract, type Headers } from 'tar-stream'
import { Failure } from './failure.ts'
import { bytesOf } from './reading.ts'
import { longestText } from './would.ts'

/** One entry of a tree that is to be written. */
export interface TreeEntry {
  /** How many came before it. */
  readonly index: number
  readonly kind: 'file' | 'directory' | 'symlink'
  /** As the tar has it. */
  readonly shown: string
  /** From the root of the tree on, which is no name. */
  readonly names: readonly string[]
  readonly mode: number
  readonly size: number
  /** What a symlink holds. */
  readonly target: string
  /** To be read to the end before the next entry. */
  readonly pieces: AsyncIterable<Buffer>
}

/** Bytes of what stands before an entry, as long names: it is held in memory. */
const longestHeader = 4 * 1024 * 1024

const kinds: Readonly<Record<string, TreeEntry['kind']>> = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'directory',
  symlink: 'symlink',
}

/** The names on the way to an entry. Throws `Failure` where it is not one below the root of the tree. */
function namesOf(shown: string): string[] {
  const refuse = (why: string) => new Failure(`the tree holds ${JSON.stringify(shown)}: ${why}`)
  if (shown.startsWith('/')) throw refuse('an absolute name')
  if (/[\0\ufffd]/.test(shown)) throw refuse('no name of UTF-8')
  const names = shown.split('/').filter((name) => name !== '' && name !== '.')
  if (names.includes('..')) throw refuse('.. leads out of it')
  return names
}

function entryOf(
  { name, type, size = 0, mode = 0o644, linkname }: Headers,
  index: number,
  pieces: AsyncIterable<Buffer>,
): TreeEntry {
  const names = namesOf(name)
  const kind = kinds[type ?? '']
  const refuse = (why: string) => new Failure(`the tree holds ${JSON.stringify(name)}: ${why}`)
  if (kind === undefined)
    throw refuse(`${type ?? 'something unknown'}, and only files, directories and symlinks are copied`)
  if (names.length === 0 && kind !== 'directory') throw refuse('no name')
  if (!Number.isSafeInteger(size) || size < 0) throw refuse('no size')
  const target = kind === 'symlink' ? (linkname ?? '') : ''
  if (kind === 'symlink' && !/^[^\0\ufffd]+$/.test(target)) throw refuse('a symlink to nothing')
  return { index, kind, shown: name, names, mode, size, target, pieces }
}

/** The entries of a tar, in order, each judged by itself. Throws `Failure` that names the one that may not be there. */
export async function* entriesOf(fd: number): AsyncGenerator<TreeEntry> {
  const tar = extract()
  let fed = 0
  let seen = 0
  let failure: unknown
  async function* feed() {
    for await (const piece of bytesOf(fd)) {
      fed += piece.length
      if (fed - seen > longestHeader) throw new Failure('the tree holds a name of more than 4 MiB')
      yield piece
    }
  }
  pipeline(Readable.from(feed()), tar, (error) => {
    failure = error
  })
  const explain = (error: unknown) => {
    const cause = failure instanceof Failure ? failure : error
    if (cause instanceof Failure || !(cause instanceof Error)) return cause
    if (!/tar|end of data/i.test(cause.message)) return cause
    return new Failure(`what the server sent is no tar, or a damaged one: ${cause.message}`)
  }
  async function* counted(pieces: AsyncIterable<Buffer>) {
    try {
      for await (const piece of pieces) {
        seen = fed
        yield piece
      }
    } catch (error) {
      throw explain(error)
    }
  }
  let index = 0
  try {
    for await (const entry of tar) {
      seen = fed
      yield entryOf(entry.header, index, counted(entry))
      index += 1
    }
    if (failure) throw failure
  } catch (error) {
    throw explain(error)
  }
}

/** Names that an entry may make behind the one before it: its own, and directories that have no entry. */
function newNames(names: readonly string[], former: readonly string[]): number {
  const common = names.findIndex((name, at) => name !== former[at])
  return common < 0 ? 0 : names.length - common
}

/**
 * Judges all of a tree before any of it is written; answers the sums of the files that are too large to be compared in memory.
 * `most` bounds the names that the tree may make.
 */
export async function judge(fd: number, most: number): Promise<Map<number, string>> {
  const sums = new Map<number, string>()
  let made = 0
  let former: readonly string[] = []
  for await (const { index, size, names, pieces } of entriesOf(fd)) {
    made += newNames(names, former)
    former = names
    if (made > most)
      throw new Failure(
        `the tree has more than ${most.toLocaleString('en-US')} entries: copy from fewer hosts at once, or copy an archive of it`,
      )
    const hash = size > longestText ? createHash('sha256') : null
    for await (const piece of pieces) hash?.update(piece)
    if (hash !== null) sums.set(index, hash.digest('hex'))
  }
  return sums
}
