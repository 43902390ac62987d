import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  type Stats,
  statSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { assertGivable, capDacOverride, isAble, modeBits, type Ownership } from './attributes.ts'
import { nameOf, systemPath } from './byte-names.ts'
import { codeOf, Failure, refusedBy, refusedIn } from './failure.ts'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, W_OK, X_OK } = constants

/** Mode bit of a directory that passes its group to new entries (inode(7)). */
const setgid = 0o2000

/** open(2): refers to a file without opening it. Node has no constant for it. */
const O_PATH = 0o10000000
const mountOf = (fd: number) => /^mnt_id:.*$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[0]

/** Type of a file, for messages. */
export function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory'
  if (stats.isSymbolicLink()) return 'a symbolic link'
  if (stats.isFIFO()) return 'a FIFO'
  if (stats.isSocket()) return 'a socket'
  return stats.isFile() ? 'a file' : 'a device'
}

/**
 * A directory held open: names resolve in this very directory, even if its path changes meanwhile. Symlinks
 * in it are not followed. Throws `Failure` with the path and the system's own words.
 */
export class OpenDirectory {
  readonly path: string
  readonly fd: number
  isDirty = false

  private constructor(path: string, fd: number) {
    this.path = path
    this.fd = fd
  }

  /** Opens by path and follows symlinks, as any program of this user would. */
  static open(path: string): OpenDirectory {
    try {
      return new OpenDirectory(path, openSync(systemPath(path), O_RDONLY | O_DIRECTORY))
    } catch (error) {
      throw refusedBy(error, path, 'open')
    }
  }

  child(name: string, follow = false): OpenDirectory {
    const flags = O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW)
    const fd = this.#do('open', name, (at) => openSync(at, flags))
    return new OpenDirectory(this.pathOf(name), fd)
  }

  pathOf(name: string): string {
    return join(this.path, name)
  }

  stat(): Stats {
    return fstatSync(this.fd)
  }

  /** Throws the `Failure` of creating a directory or symlink with this owner, as far as predictable. */
  assertTakes(owner: Ownership, path: string): void {
    this.assertWritable()
    assertGivable(owner, this.ownerOfNew(), path)
  }

  /** Throws the `Failure` of adding a name, as far as it can be predicted. */
  assertWritable(): void {
    try {
      accessSync(`/proc/self/fd/${this.fd}`, W_OK | X_OK)
    } catch (error) {
      // access(2) ignores the capabilities of users other than root.
      if (codeOf(error) !== 'EACCES' || !isAble(capDacOverride)) throw refusedIn(error, this.path)
    }
  }

  ownerOfNew(): Pick<Stats, 'uid' | 'gid'> {
    const { mode, gid } = this.stat()
    const own = (mode & setgid) === 0 ? process.getegid?.() : gid
    return { uid: process.geteuid?.() ?? 0, gid: own ?? gid }
  }

  /** Error code if this user may not write the file; null otherwise. */
  whyReadOnly(name: string): string | null {
    try {
      accessSync(this.#at(name), W_OK)
      return null
    } catch (error) {
      return codeOf(error)
    }
  }

  leadsToDirectory(name: string): boolean {
    try {
      return this.statFollowed(name)?.isDirectory() === true
    } catch {
      return false
    }
  }

  isMountPoint(name: string): boolean {
    const fd = this.#do('open', name, (at) => openSync(at, O_PATH | O_NOFOLLOW))
    try {
      return mountOf(fd) !== mountOf(this.fd)
    } finally {
      closeSync(fd)
    }
  }

  names(): string[] {
    const found = this.#do('readdir', '', (at) => readdirSync(at, { encoding: 'buffer' }))
    return found.map(nameOf).sort()
  }

  /** Follows symlinks. Null if the name does not exist. */
  statFollowed(name: string): Stats | null {
    return this.#do('stat', name, (at) => statSync(at, { throwIfNoEntry: false })) ?? null
  }

  /** Null if the name does not exist. */
  lstat(name: string): Stats | null {
    return this.#do('stat', name, (at) => lstatSync(at, { throwIfNoEntry: false })) ?? null
  }

  /** Opens a regular file for reading. Throws `Failure` for anything else, and never blocks on it. */
  openFile(name: string, follow = false): number {
    const flags = O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW)
    const fd = this.#do('open', name, (at) => openSync(at, flags))
    const stats = fstatSync(fd)
    if (stats.isFile()) return fd
    closeSync(fd)
    throw new Failure(`${this.pathOf(name)} is ${kindOf(stats)}, not a regular file`)
  }

  /** Creates a file that only this user may read. Null if the name exists. */
  createFile(name: string): number | null {
    try {
      const fd = openSync(this.#at(name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
      this.isDirty = true
      return fd
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return null
      throw refusedIn(error, this.path)
    }
  }

  makeDirectory(name: string, mode: number): void {
    this.#add(name, (at) => mkdirSync(at, mode))
  }

  makeLink(name: string, target: string): void {
    this.#add(name, (at) => symlinkSync(systemPath(target), at))
  }

  readLink(name: string): string {
    return nameOf(this.#do('readlink', name, (at) => readlinkSync(at, { encoding: 'buffer' })))
  }

  /** Adds a hard link, whose name must not exist yet. */
  link(name: string, other: string): void {
    this.#change('link', other, (at) => linkSync(this.#at(name), at))
  }

  rename(from: string, to: string): void {
    this.#change('replace', to, (at) => renameSync(this.#at(from), at))
  }

  /** Sets the owner of a new symlink itself; `path` is its path in messages. */
  own(name: string, owner: Ownership, path: string): void {
    try {
      lchownSync(this.#at(name), owner.uid ?? -1, owner.gid ?? -1)
    } catch (error) {
      assertGivable(owner, this.ownerOfNew(), path)
      throw refusedBy(error, path, 'chown')
    }
  }

  /** False if it did not exist. */
  remove(name: string): boolean {
    try {
      unlinkSync(this.#at(name))
      this.isDirty = true
      return true
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return false
      throw refusedBy(error, this.pathOf(name), 'unlink')
    }
  }

  /** Sets owner, then mode; null keeps a value. Keeps a setgid inherited from the parent. */
  settle(uid: number | null, gid: number | null, mode: number | null): void {
    const { path, fd } = this
    try {
      if (uid !== null || gid !== null) fchownSync(fd, uid ?? -1, gid ?? -1)
      if (mode === null) return
      const found = this.stat().mode & modeBits
      const wanted = mode | (found & setgid)
      // A chmod by a user outside the group would clear setgid.
      if (wanted !== found) fchmodSync(fd, wanted)
    } catch (error) {
      assertGivable({ uid, gid }, this.stat(), path)
      throw refusedBy(error, path, 'chown')
    }
  }

  sync(): void {
    if (this.isDirty) fsyncSync(this.fd)
    this.isDirty = false
  }

  close(): void {
    closeSync(this.fd)
  }

  #at(name: string): string | Buffer {
    return systemPath(`/proc/self/fd/${this.fd}/${name}`)
  }

  #do<T>(doing: string, name: string, work: (at: string | Buffer) => T): T {
    try {
      return work(this.#at(name))
    } catch (error) {
      throw refusedBy(error, this.pathOf(name), doing)
    }
  }

  #change(doing: string, name: string, work: (at: string | Buffer) => void): void {
    this.#do(doing, name, work)
    this.isDirty = true
  }

  #add(name: string, work: (at: string | Buffer) => void): void {
    try {
      work(this.#at(name))
    } catch (error) {
      // Another process created the name first, so blame the name, not the directory.
      throw codeOf(error) === 'EEXIST'
        ? refusedBy(error, this.pathOf(name), 'create')
        : refusedIn(error, this.path)
    }
    this.isDirty = true
  }
}
