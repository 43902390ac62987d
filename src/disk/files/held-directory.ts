import {
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
  readlinkSync,
  renameSync,
  type Stats,
  statSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { modeBits } from './attributes.ts'
import { nameOf, systemPath } from './byte-names.ts'
import { codeOf, Failure, refusedBy } from './failure.ts'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants
/** Of a directory: what is made in it gets its group (inode(7)). */
const setgid = 0o2000

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
export class HeldDirectory {
  readonly path: string
  readonly fd: number
  isDirty = false

  private constructor(path: string, fd: number) {
    this.path = path
    this.fd = fd
  }

  /** By its whole path, as any program of this user would find it. */
  static open(path: string): HeldDirectory {
    try {
      return new HeldDirectory(path, openSync(systemPath(path), O_RDONLY | O_DIRECTORY))
    } catch (error) {
      throw refusedBy(error, path, 'open')
    }
  }

  /** A directory in this one. */
  child(name: string, follow = false): HeldDirectory {
    const flags = O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW)
    const fd = this.#do('open', name, (at) => openSync(at, flags))
    return new HeldDirectory(this.pathOf(name), fd)
  }

  pathOf(name: string): string {
    return join(this.path, name)
  }

  stat(): Stats {
    return fstatSync(this.fd)
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
      throw refusedBy(error, this.pathOf(name), 'create')
    }
  }

  makeDirectory(name: string, mode: number): void {
    this.#change('mkdir', name, (at) => mkdirSync(at, mode))
  }

  makeLink(name: string, target: string): void {
    this.#change('symlink', name, (at) => symlinkSync(systemPath(target), at))
  }

  readLink(name: string): string {
    return nameOf(this.#do('readlink', name, (at) => readlinkSync(at, { encoding: 'buffer' })))
  }

  /** Gives what is there a second name; nothing may have it yet. */
  link(name: string, other: string): void {
    this.#change('link', other, (at) => linkSync(this.#at(name), at))
  }

  rename(from: string, to: string): void {
    this.#change('rename', to, (at) => renameSync(this.#at(from), at))
  }

  /** Owner of a symlink itself. */
  own(name: string, uid: number, gid: number): void {
    this.#change('chown', name, (at) => lchownSync(at, uid, gid))
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
}
