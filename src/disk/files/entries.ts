import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { extract, type Headers } from 'tar-stream'
import { howRun } from './attributes.ts'
import { bytesOfName, cutIn, nameIn } from './byte-names.ts'
import { Failure } from './failure.ts'
import type { OpenDirectory } from './open-directory.ts'
import { bytesOf, longestText } from './open-file.ts'

/** Bytes of headers before an entry, such as long names; they are held in memory. */
const longestHeader = 4 * 1024 * 1024

/** Characters of a name in a message. */
const longestShown = 1000
/** Depth of an entry: each directory on the way is held open. */
const mostDeep = 1000

/** Bytes of names for one tar process, and of its output. */
const mostAsked = 32 * 1024 * 1024
/** Longest path that the system accepts, in bytes. */
const longestPath = 4096
/** Bytes of a tar output line, besides the name. */
const lineBytes = 64

/** Arguments that make GNU tar mark ACLs by + and other attributes by *, without opening files. */
const marking = `--acls --xattrs --xattrs-include=* --xattrs-exclude=security.selinux --no-recursion \
-cvvf /dev/null -C /proc/self/fd/3 --null -T -`.split(' ')

const kinds: Readonly<Record<string, TreeEntry['kind']>> = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'directory',
  symlink: 'symlink',
}

export interface TreeEntry {
  readonly index: number
  readonly kind: 'file' | 'directory' | 'symlink'
  readonly tarName: string
  /** Path segments from the root of the tree, which itself has none. */
  readonly names: readonly string[]
  readonly mode: number
  readonly size: number
  readonly target: string
  /** Actual length of the previous file, padded with NUL; such an entry has no other meaning. */
  readonly cut: number | null
  /** Must be read to the end before the next entry. */
  readonly pieces: AsyncIterable<Buffer>
}

export interface Judged {
  /** Checksums of the files too large to compare in memory, by index. */
  readonly sums: ReadonlyMap<number, string>
  /** Actual bytes of files that shrank while they were read, by index. */
  readonly cuts: ReadonlyMap<number, number>
  readonly files: PlainFiles
}

/**
 * The entries of a tar, in order, each validated alone. `cuts`: actual lengths of files that are shorter than
 * the tar says, by index. Throws a `Failure` that names the invalid entry.
 */
export async function* entriesOf(
  fd: number,
  cuts: ReadonlyMap<number, number> = new Map(),
): AsyncGenerator<TreeEntry> {
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
    return new Failure(`the server sent a damaged tar: ${cause.message}`)
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
      const whole = entryOf(entry.header, index, counted(entry))
      const cut = cuts.get(index)
      yield cut === undefined ? whole : { ...whole, size: cut, pieces: beginningOf(whole.pieces, cut) }
      index += 1
    }
    if (failure) throw failure
  } catch (error) {
    throw explain(error)
  }
}

function entryOf(header: Headers, index: number, pieces: AsyncIterable<Buffer>): TreeEntry {
  const { type, size = 0, mode = 0o644 } = header
  const tarName = nameIn(header, 'name')
  if (tarName === null) throw refusal(header.name, 'a name that is not UTF-8, without its bytes')
  const refuse = (why: string) => refusal(tarName, why)
  const names = namesOf(tarName)
  const kind = kinds[type ?? '']
  if (kind === undefined)
    throw refuse(`${type ?? 'unknown type'}; only files, directories and symlinks are copied`)
  if (names.length === 0 && kind !== 'directory') throw refuse('no name')
  if (!Number.isSafeInteger(size) || size < 0) throw refuse('invalid size')
  const target = kind === 'symlink' ? nameIn(header, 'linkname') : ''
  if (target === null || (kind === 'symlink' && !/^[^\0]+$/.test(target)))
    throw refuse('a symlink to nothing')
  return { index, kind, tarName, names, mode, size, target, cut: cutIn(header), pieces }
}

/** Path segments of an entry. Throws `Failure` if it is outside the root of the tree. */
function namesOf(tarName: string): string[] {
  const refuse = (why: string) => refusal(tarName, why)
  if (tarName.startsWith('/')) throw refuse('an absolute name')
  if (tarName.includes('\0')) throw refuse('a name with NUL')
  const names = tarName.split('/').filter((name) => name !== '' && name !== '.')
  if (names.includes('..')) throw refuse('.. leads out of it')
  if (names.length > mostDeep) throw refuse(`more than ${mostDeep} directories deep`)
  return names
}

const refusal = (tarName: string, why: string) =>
  new Failure(`the tree holds ${JSON.stringify(tarName.slice(0, longestShown))}: ${why}`)

/** The first `length` bytes; consumes all pieces. */
async function* beginningOf(pieces: AsyncIterable<Buffer>, length: number): AsyncGenerator<Buffer> {
  let left = length
  for await (const piece of pieces) {
    if (left > 0) yield piece.subarray(0, left)
    left -= piece.length
  }
}

/** Validates a whole tar before any of it is written. `most`: limit of names that the tree may create. */
export async function judge(fd: number, most: number): Promise<Judged> {
  const sums = new Map<number, string>()
  const cuts = new Map<number, number>()
  const files = new PlainFiles()
  let made = 0
  let previous: readonly string[] = []
  let before: TreeEntry | null = null
  for await (const entry of entriesOf(fd)) {
    const { index, size, names, cut, pieces } = entry
    if (cut !== null) {
      if (before?.kind !== 'file' || !(cut >= 0 && cut < before.size))
        throw refusal(entry.tarName, 'an invalid length')
      cuts.set(before.index, cut)
      sums.delete(before.index)
    }
    before = entry
    const fresh = newNames(names, previous)
    if (entry.kind === 'file') files.add(names.join('/'), fresh)
    made += fresh
    previous = names
    if (made > most)
      throw new Failure(
        `the tree has more than ${most.toLocaleString('en-US')} entries: copy from fewer hosts at once, or copy an archive of it`,
      )
    const hash = size > longestText ? createHash('sha256') : null
    for await (const piece of pieces) hash?.update(piece)
    if (hash !== null) sums.set(index, hash.digest('hex'))
  }
  return { sums, cuts, files }
}

/** Names that an entry may create after the previous one: its own, and directories without an entry. */
function newNames(names: readonly string[], previous: readonly string[]): number {
  const common = names.findIndex((name, at) => name !== previous[at])
  return common < 0 ? 0 : names.length - common
}

/**
 * Files of a tree without ACL and extended attributes: one tar process finds them all, where cp needs a
 * process per file. Only an optimization: if it fails, no file counts as plain.
 */
class PlainFiles {
  readonly #paths = new Set<string>()
  #bytes = 0
  #asked = 0
  #plain: ReadonlySet<string> = new Set()

  /** `names`: number of new path segments, including its own. */
  add(path: string, names: number): void {
    this.#bytes += (path.length + lineBytes) * names
    if (this.#bytes <= mostAsked && path.length < longestPath) this.#paths.add(path)
  }

  /** Whether the file is plain and inherits no ACL. False for the first: one file needs no tar. */
  has(root: OpenDirectory, path: string): boolean {
    this.#asked += 1
    if (this.#asked === 2) this.#plain = plainOf(root, this.#paths)
    return this.#plain.has(path) && this.#plain.has(dirname(path))
  }
}

/** Plain files among these, and plain directories on the way to them. */
function plainOf(root: OpenDirectory, paths: Iterable<string>): ReadonlySet<string> {
  const seen = new Map([['.', true]])
  // tar follows symlinks in a path, so it gets no path through one.
  const isThere = (path: string): boolean => {
    const known = seen.get(path) ?? (isThere(dirname(path)) && isFileOrDirectory(root, path))
    seen.set(path, known)
    return known
  }
  for (const path of paths) isThere(path)
  const names = [...seen.keys()].filter(isThere)
  const { status, stdout, stderr } = spawnSync('tar', marking, {
    ...howRun(),
    stdio: ['pipe', 'pipe', 'pipe', root.fd],
    input: Buffer.concat(names.map((name) => bytesOfName(`./${name}\0`))),
    maxBuffer: mostAsked,
  })
  const lines = stdout.split('\n')
  if (status !== 0 || stderr !== '' || lines.length !== names.length + 1) return new Set()
  return new Set(names.filter((_, at) => /^[-d].{9} /.test(lines[at] ?? '')))
}

function isFileOrDirectory(root: OpenDirectory, path: string): boolean {
  try {
    const found = root.lstat(path)
    return found?.isFile() === true || found?.isDirectory() === true
  } catch {
    return false
  }
}
