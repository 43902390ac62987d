import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { howRun } from './attributes.ts'
import { bytesOfName } from './byte-names.ts'
import type { HeldDirectory } from './held-directory.ts'

/** Bytes that tar is asked at once, and of what it says. */
const mostAsked = 32 * 1024 * 1024
/** Bytes of a path that the system takes. */
const longestPath = 4096
/** Bytes of a line of tar, beside the name. */
const lineBytes = 64

/** What GNU tar is asked for: it marks what has an ACL by +, and what has other attributes by *. It opens no file. */
const marking = `--acls --xattrs --xattrs-include=* --xattrs-exclude=security.selinux --no-recursion \
-cvvf /dev/null -C /proc/self/fd/3 --null -T -`.split(' ')

/**
 * The files of a tree, and which of them have no ACL and no extended attributes: one process tells it for all, where cp
 * takes one for each file. A hint only: where it can't be told, they are not plain.
 */
export class PlainFiles {
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
  has(root: HeldDirectory, path: string): boolean {
    this.#asked += 1
    if (this.#asked === 2) this.#plain = plainOf(root, this.#paths)
    return this.#plain.has(path) && this.#plain.has(dirname(path))
  }
}

/** Which of these files, and of the directories on the way to them, are plain. */
function plainOf(root: HeldDirectory, paths: Iterable<string>): ReadonlySet<string> {
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

function isFileOrDirectory(root: HeldDirectory, path: string): boolean {
  try {
    const found = root.lstat(path)
    return found?.isFile() === true || found?.isDirectory() === true
  } catch {
    return false
  }
}
