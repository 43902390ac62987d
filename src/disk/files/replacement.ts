import { createHash } from 'node:crypto'
import { closeSync, fchmodSync, fstatSync, fsync, type Stats } from 'node:fs'
import { promisify } from 'node:util'
import { type Attributes, apply, capFowner, copyExtended, isAble, modeBits } from './attributes.ts'
import { shownNames } from './byte-names.ts'
import { codeOf, Failure, hinted, refusedBy, userName } from './failure.ts'
import { kindOf, type OpenDirectory } from './open-directory.ts'
import { Appender, bytesOf, readSmall } from './open-file.ts'

const syncing = promisify(fsync)
/** Mode bit of a directory in which only owners may replace their files. */
const sticky = 0o1000
/** Longest file name in bytes, on all common file systems. */
const longestName = 255

const inPlace = "to write in place on a host: rsm exec --stdin FILE -- 'cat > PATH'"

/** Manages the temporary files of one order, and knows whether it may still change anything. */
export interface Temporaries {
  readonly taskId: string
  report(outcome: { readonly changed: boolean }): void
  /** Call right before a change. Throws `Failure` if the order was cancelled. */
  checkCancelled(): void
  /** Adds a warning about a copy that succeeded; each sentence once. */
  note(sentence: string): void
  create(directory: OpenDirectory): { name: string; fd: number }
  /** An unused name for a symlink. */
  reserve(directory: OpenDirectory): string
}

/** A new file, written beside the one that it replaces. */
export class Replacement {
  readonly #workspace: Temporaries
  readonly #directory: OpenDirectory
  readonly #name: string
  readonly #temporary: string
  readonly #fd: number
  readonly #text: Appender
  #isPlaced = false

  constructor(workspace: Temporaries, directory: OpenDirectory, name: string) {
    this.#workspace = workspace
    this.#directory = directory
    this.#name = name
    assertReplaceable(directory, name)
    const { name: temporary, fd } = addBeside(directory, name, () => workspace.create(directory))
    this.#temporary = temporary
    this.#fd = fd
    this.#text = new Appender(fd, { isSynced: true })
  }

  async write(piece: Buffer): Promise<void> {
    await this.#appended(this.#text.write(piece))
  }

  /** Replaces the file, atomically and durably. Throws `Failure` if the order was cancelled. */
  async commit(
    attributes: Attributes,
    { keepsPrevious, isPlain }: { keepsPrevious: boolean; isPlain?: (() => boolean) | undefined },
  ): Promise<void> {
    await this.#appended(this.#text.end())
    apply(attributes, this.#fd, this.#path, () => this.#copyExtended(attributes.mode, isPlain))
    try {
      await syncing(this.#fd)
    } catch (error) {
      throw refusedBy(error, this.#path, 'fsync')
    }
    this.#workspace.checkCancelled()
    const previous = assertReplaceable(this.#directory, this.#name)
    if (keepsPrevious && previous !== null)
      this.#directory.link(this.#name, backupName(this.#name, this.#workspace.taskId))
    this.#directory.rename(this.#temporary, this.#name)
    this.#isPlaced = true
    this.#workspace.report({ changed: true })
  }

  /** Must always be called: removes a temporary file that was not committed. */
  async close(): Promise<void> {
    await this.#text.settled()
    closeSync(this.#fd)
    if (!this.#isPlaced) this.#directory.remove(this.#temporary)
  }

  /** Keeps ACL, extended attributes and capabilities of the previous file; notes those it cannot keep. */
  #copyExtended(mode: number, isPlain = () => false): void {
    if (this.#directory.lstat(this.#name)?.isFile() !== true || isPlain()) return
    let from: number
    try {
      from = this.#directory.openFile(this.#name)
    } catch (error) {
      return this.#workspace.note(notKept(this.#path, error instanceof Error ? error.message : String(error)))
    }
    try {
      const isWider = (fstatSync(from).mode & modeBits & ~mode) !== 0
      const { isKept, isAble, why } = isWider ? this.#narrowed(from, mode) : copyExtended(from, this.#fd)
      if (!isKept) this.#workspace.note(notKept(isAble ? this.#path : 'files that are replaced', why))
    } finally {
      closeSync(from)
    }
  }

  /** Copies through an empty file, because cp also sets the previous mode, which may be wider. */
  #narrowed(from: number, mode: number): ReturnType<typeof copyExtended> {
    const { name, fd } = this.#workspace.create(this.#directory)
    try {
      this.#directory.remove(name)
      const first = copyExtended(from, fd)
      fchmodSync(fd, mode)
      const second = copyExtended(fd, this.#fd)
      return first.isKept ? second : first
    } finally {
      closeSync(fd)
    }
  }

  async #appended(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      throw refusedBy(error, this.#path, 'write')
    }
  }

  get #path(): string {
    return this.#directory.pathOf(this.#name)
  }
}

/** The file or symlink to replace; null without one. Throws `Failure` for anything that is not replaced. */
export function statReplaceable(directory: OpenDirectory, name: string): Stats | null {
  const found = directory.lstat(name)
  if (found === null || found.isFile() || found.isSymbolicLink()) return found
  throw new Failure(`${directory.pathOf(name)} is ${kindOf(found)}, which a file cannot replace`)
}

/**
 * Throws `Failure` if a file, or with `isLink` a symlink, cannot replace what exists; otherwise returns its
 * stats. Called before anything is written.
 */
export function assertReplaceable(directory: OpenDirectory, name: string, isLink = false): Stats | null {
  const previous = statReplaceable(directory, name)
  if (previous === null) return null
  const path = directory.pathOf(name)
  if (!isLink && previous.isSymbolicLink() && directory.leadsToDirectory(name))
    throw new Failure(
      `${path} is a symbolic link to a directory, which a file cannot replace; to copy into the directory: ${path}/`,
    )
  if (directory.isMountPoint(name))
    throw new Failure(`${path} is a mount point, which cannot be replaced (EBUSY); ${inPlace}`, 1, 'EBUSY')
  if (previous.isFile()) assertMutable(directory, name)
  const { mode, uid } = directory.stat()
  const owners = [previous.uid, uid]
  if ((mode & sticky) !== 0 && !owners.includes(process.geteuid?.() ?? -1) && !isAble(capFowner))
    throw new Failure(
      `replace ${path} as ${userName()}: it belongs to another user, in a directory with the sticky bit (EPERM)`,
      1,
      'EPERM',
    )
  return previous
}

export function assertMutable(directory: OpenDirectory, name: string): void {
  const path = directory.pathOf(name)
  const code = directory.whyReadOnly(name)
  if (code === 'EPERM') throw new Failure(`${path} is immutable (EPERM); see chattr -i`, 1, code)
  if (code === 'EROFS') throw new Failure(`write ${path}: read-only file system (EROFS)`, 1, code)
}

/** Calls `add`; if the directory refuses it, the error has a hint how to write in place. */
export function addBeside<T>(directory: OpenDirectory, name: string, add: () => T): T {
  try {
    return add()
  } catch (error) {
    const isDenied = error instanceof Failure && ['EACCES', 'EPERM'].includes(error.code ?? '')
    if (!isDenied || directory.whyReadOnly(name) !== null || directory.lstat(name)?.isFile() !== true)
      throw error
    throw hinted(error, `a file is replaced by a new one in its directory; ${inPlace}`)
  }
}

const notKept = (of: string, why: string) =>
  `not all ACLs, extended attributes and capabilities of ${shownNames(of)} are kept: ${why}`

/** Name of the backup of a replaced file: whole characters, at most 255 bytes. */
export function backupName(name: string, taskId: string): string {
  const ending = `.rsm-${taskId}`
  const kept = Array.from(name)
  while (Buffer.byteLength(kept.join('') + ending) > longestName) kept.pop()
  return kept.join('') + ending
}

/** Whether a file of at most 1 MiB holds these bytes; false if this user may not read it. */
export function isSameText(directory: OpenDirectory, name: string, bytes: Buffer): boolean {
  try {
    return readSmall(directory, name).equals(bytes)
  } catch (error) {
    if (codeOf(error) === 'EACCES') return false
    throw error
  }
}

/** Null if this user may not read it. */
export async function sha256In(directory: OpenDirectory, name: string): Promise<string | null> {
  let fd: number
  try {
    fd = directory.openFile(name)
  } catch (error) {
    if (codeOf(error) === 'EACCES') return null
    throw error
  }
  try {
    const hash = createHash('sha256')
    for await (const piece of bytesOf(fd)) hash.update(piece)
    return hash.digest('hex')
  } finally {
    closeSync(fd)
  }
}
