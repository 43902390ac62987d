import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { extract, type Headers } from 'tar-stream'
import { howRun } from './attributes.ts'
import { bytesOfName } from './byte-names.ts'
import { longestText } from './comparison.ts'
import { Failure } from './failure.ts'
import type { OpenDirectory } from './open-directory.ts'
import { bytesOf } from './reading.ts'
import { cutIn, nameIn } from './tar-records.ts'

/** Bytes of what stands before an entry, as long names: it is held in memory. */
const longestHeader = 4 * 1024 * 1024

/** Of a name in a sentence. */
const longestShown = 1000
/** Directories that one entry may lie in: each one on the way is held open. */
const mostDeep = 1000

/** Bytes of names that tar gets at once, and of its output. */
const mostAsked = 32 * 1024 * 1024
/** Bytes of a path that the system takes. */
const longestPath = 4096
/** Bytes of a line of tar, beside the name. */
const lineBytes = 64

/** Arguments with which GNU tar marks ACLs by + and other attributes by *. It opens no file. */
const marking = `--acls --xattrs --xattrs-include=* --xattrs-exclude=security.selinux --no-recursion \
-cvvf /dev/null -C /proc/self/fd/3 --null -T -`.split(' ')

const kinds: Readonly<Record<string, TreeEntry['kind']>> = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'directory',
  symlink: 'symlink',
}

/** One entry of a tree that is to be written. */
export interface TreeEntry {
  /** How many came before it. */
  readonly index: number
  readonly kind: 'file' | 'directory' | 'symlink'
  /** As the tar has it. */
  readonly tarName: string
  /** From the root of the tree on, which is no name. */
  readonly names: readonly string[]
  readonly mode: number
  readonly size: number
  /** What a symlink holds. */
  readonly target: string
  /** Bytes that were read of the file before it, which is filled up with NUL; such an entry stands for nothing else. */
  readonly cut: number | null
  /** To be read to the end before the next entry. */
  readonly pieces: AsyncIterable<Buffer>
}

export interface Judged {
  /** Of the files that are too large to be compared in memory, by index. */
  readonly sums: ReadonlyMap<number, string>
  /** Bytes of the files that became shorter while they were read, by index. */
  readonly cuts: ReadonlyMap<number, number>
  readonly files: PlainFiles
}

/**
 * The entries of a tar, in order, each judged by itself; `cuts`: the bytes of those that are shorter than the tar says, by index.
 * Throws `Failure` that names the one that may not be there.
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
    throw refuse(`${type ?? 'something unknown'}, and only files, directories and symlinks are copied`)
  if (names.length === 0 && kind !== 'directory') throw refuse('no name')
  if (!Number.isSafeInteger(size) || size < 0) throw refuse('no size')
  const target = kind === 'symlink' ? nameIn(header, 'linkname') : ''
  if (target === null || (kind === 'symlink' && !/^[^\0]+$/.test(target)))
    throw refuse('a symlink to nothing')
  return { index, kind, tarName, names, mode, size, target, cut: cutIn(header), pieces }
}

/** The names on the way to an entry. Throws `Failure` where it is not one below the root of the tree. */
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

/** Its first bytes; all of it is read. */
async function* beginningOf(pieces: AsyncIterable<Buffer>, length: number): AsyncGenerator<Buffer> {
  let left = length
  for await (const piece of pieces) {
    if (left > 0) yield piece.subarray(0, left)
    left -= piece.length
  }
}

/** Judges all of a tree before any of it is written. `most` bounds the names that the tree may make. */
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

/** Names that an entry may make behind the one before it: its own, and directories that have no entry. */
function newNames(names: readonly string[], previous: readonly string[]): number {
  const common = names.findIndex((name, at) => name !== previous[at])
  return common < 0 ? 0 : names.length - common
}

/**
 * The files of a tree, and which of them have no ACL and no extended attributes: one process tells it for all, where cp
 * takes one for each file. A hint only: where it can't be told, they are not plain.
 */
class PlainFiles {
  readonly #paths = new Set<string>()
  #bytes = 0
  #asked = 0
  #plain: ReadonlySet<string> = new Set()

  /** `names`: how many are new on the way to it, with its own. */
  add(path: string, names: number): void {
    this.#bytes += (path.length + lineBytes) * names
    if (this.#bytes <= mostAsked && path.length < longestPath) this.#paths.add(path)
  }

  /** Whether a file that is replaced is plain, and gets no ACL from its directory. False for the first one that is asked for. */
  has(root: OpenDirectory, path: string): boolean {
    this.#asked += 1
    if (this.#asked === 2) this.#plain = plainOf(root, this.#paths)
    return this.#plain.has(path) && this.#plain.has(dirname(path))
  }
}

/** Which of these files, and of the directories on the way to them, are plain. */
function plainOf(root: OpenDirectory, paths: Iterable<string>): ReadonlySet<string> {
  const seen = new Map([['.', true]])
  // tar follows a symlink on the way to a name, so it gets no name behind one.
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
