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

/** Of a directory: what is made in it gets its group (inode(7)). */
const setgid = 0o2000

/** open(2): names a file without opening it. Node has no constant for it. */
const O_PATH = 0o10000000
/** The number of the mount that something open lies on. */
const mountOf = (fd: number) => /^mnt_id:.*$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[0]

/** What something is that is no regular file. */
export function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory'
  if (stats.isSymbolicLink()) return 'a symbolic link'
  if (stats.isFIFO()) return 'a FIFO'
  if (stats.isSocket()) return 'a socket'
  return stats.isFile() ? 'a file' : 'a device'
}

/**
 * A directory that is held open: a name in it is a name in this very directory, whatever its path leads to meanwhile. No
 * symlink in it is followed. Throws `Failure` with the path and the system's own words.
 */
export class OpenDirectory {
  readonly path: string
  readonly fd: number
  isDirty = false

  private constructor(path: string, fd: number) {
    this.path = path
    this.fd = fd
  }

  /** By its whole path, as any program of this user would find it. */
  static open(path: string): OpenDirectory {
    try {
      return new OpenDirectory(path, openSync(systemPath(path), O_RDONLY | O_DIRECTORY))
    } catch (error) {
      throw refusedBy(error, path, 'open')
    }
  }

  /** A directory in this one. */
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

  /** Throws the `Failure` that a directory or symlink of this owner would end in, as far as that shows without making it. */
  assertTakes(owner: Ownership, path: string): void {
    this.assertWritable()
    assertGivable(owner, this.ownerOfNew(), path)
  }

  /** Throws the `Failure` that adding a name would end in, as far as that shows without adding one. */
  assertWritable(): void {
    try {
      accessSync(`/proc/self/fd/${this.fd}`, W_OK | X_OK)
    } catch (error) {
      // access(2) knows nothing of the capabilities of a user other than root.
      if (codeOf(error) !== 'EACCES' || !isAble(capDacOverride)) throw refusedIn(error, this.path)
    }
  }

  /** Whom a new file in it belongs to. */
  ownerOfNew(): Pick<Stats, 'uid' | 'gid'> {
    const { mode, gid } = this.stat()
    const own = (mode & setgid) === 0 ? process.getegid?.() : gid
    return { uid: process.geteuid?.() ?? 0, gid: own ?? gid }
  }

  /** Why this user may not write to a file, as the system says it; null where that may be done. */
  whyReadOnly(name: string): string | null {
    try {
      accessSync(this.#at(name), W_OK)
      return null
    } catch (error) {
      return codeOf(error)
    }
  }

  /** Whether a symlink leads to a directory. */
  leadsToDirectory(name: string): boolean {
    try {
      return this.statFollowed(name)?.isDirectory() === true
    } catch {
      return false
    }
  }

  /** Whether something is mounted on this very name. */
  isMountPoint(name: string): boolean {
    const fd = this.#do('open', name, (at) => openSync(at, O_PATH | O_NOFOLLOW))
    try {
      return mountOf(fd) !== mountOf(this.fd)
    } finally {
      closeSync(fd)
    }
  }

  /** The names in it, sorted. */
  names(): string[] {
    const found = this.#do('readdir', '', (at) => readdirSync(at, { encoding: 'buffer' }))
    return found.map(nameOf).sort()
  }

  /** Of what a symlink leads to. Null where there is nothing of that name. */
  statFollowed(name: string): Stats | null {
    return this.#do('stat', name, (at) => statSync(at, { throwIfNoEntry: false })) ?? null
  }

  /** Null where there is nothing of that name. */
  lstat(name: string): Stats | null {
    return this.#do('stat', name, (at) => lstatSync(at, { throwIfNoEntry: false })) ?? null
  }

  /** A regular file, to be read. Throws `Failure` for anything else, which is not waited for. */
  openFile(name: string, follow = false): number {
    const flags = O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW)
    const fd = this.#do('open', name, (at) => openSync(at, flags))
    const stats = fstatSync(fd)
    if (stats.isFile()) return fd
    closeSync(fd)
    throw new Failure(`${this.pathOf(name)} is ${kindOf(stats)}, and no regular file`)
  }

  /** A new file that only this user may read. Null where there is something of that name. */
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

  /** Gives what is there a second name; nothing may have it yet. */
  link(name: string, other: string): void {
    this.#change('link', other, (at) => linkSync(this.#at(name), at))
  }

  rename(from: string, to: string): void {
    this.#change('replace', to, (at) => renameSync(this.#at(from), at))
  }

  /** Owner of a new symlink itself, which is to be known by `path`. */
  own(name: string, owner: Ownership, path: string): void {
    try {
      lchownSync(this.#at(name), owner.uid ?? -1, owner.gid ?? -1)
    } catch (error) {
      assertGivable(owner, this.ownerOfNew(), path)
      throw refusedBy(error, path, 'chown')
    }
  }

  /** True where it was there. */
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

  /** Gives the directory itself an owner, then a mode; null leaves it. It keeps a setgid that it has from its parent. */
  settle(uid: number | null, gid: number | null, mode: number | null): void {
    const { path, fd } = this
    try {
      if (uid !== null || gid !== null) fchownSync(fd, uid ?? -1, gid ?? -1)
      if (mode === null) return
      const found = this.stat().mode & modeBits
      const wanted = mode | (found & setgid)
      // A chmod by a user outside of its group would clear the setgid.
      if (wanted !== found) fchmodSync(fd, wanted)
    } catch (error) {
      assertGivable({ uid, gid }, this.stat(), path)
      throw refusedBy(error, path, 'chown')
    }
  }

  /** Makes the names in it last. */
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
      // Another process was faster: the name is what is wrong then.
      throw codeOf(error) === 'EEXIST'
        ? refusedBy(error, this.pathOf(name), 'create')
        : refusedIn(error, this.path)
    }
    this.isDirty = true
  }
}
