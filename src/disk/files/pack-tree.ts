import { once } from 'node:events'
import { closeSync, fstatSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { type Headers, type Pack, pack } from 'tar-stream'
import { Failure } from './failure.ts'
import { type HeldDirectory, kindOf } from './held-directory.ts'
import { bytesOf, hasChanged, sizeOf, whole } from './reading.ts'
import { withByteNames, withCut } from './tar-records.ts'

/** How a tree of this host is sent. */
interface Packing {
  readonly follow: boolean
  /** Hears of each file and directory that changed while it was read. */
  readonly changedAt: (path: string) => void
}

/** Bytes of a file that is read whole before its header is written. */
const smallBytes = 1024 * 1024

/** Bytes of a file whose size only its end says: it is held in memory. */
const mostMade = 32 * 1024 * 1024

/** In the place of what a large file has lost while it was read; an entry behind it says so. */
const filling = Buffer.alloc(65_536)

/** The mode keeps the bits of the type, which no tar holds: tar-stream takes 0 for none, and would make 0644 of it. */
const common = ({ mode, mtime }: Stats) => ({ mode, mtime })

const directoryEntry = (directory: HeldDirectory, shown: string): Headers => ({
  ...common(directory.stat()),
  name: shown,
  type: 'directory',
})

/** Writes one tree into a tar, entry by entry. */
class Packer {
  readonly #tar: Pack
  readonly #packing: Packing

  constructor(tar: Pack, packing: Packing) {
    this.#tar = tar
    this.#packing = packing
  }

  /** `above`: the directories on the way, by what the system calls them, as a link may lead back to one. */
  async directory(directory: HeldDirectory, prefix: string, above: readonly string[]): Promise<void> {
    const before = fstatSync(directory.fd, { bigint: true })
    const own = `${before.dev} ${before.ino}`
    if (above.includes(own)) throw new Failure(`${directory.path} leads to a directory that it lies in`)
    for (const name of directory.names()) await this.entry(directory, name, prefix + name, [...above, own])
    if (hasChanged(directory.fd, before)) this.#packing.changedAt(directory.path)
  }

  /** What is in a directory, at the top of the tree; `shown`: the name of the directory itself, or empty. */
  async top(directory: HeldDirectory, shown: string): Promise<void> {
    if (shown !== '') await this.#write(directoryEntry(directory, shown))
    await this.directory(directory, '', [])
  }

  async entry(
    directory: HeldDirectory,
    name: string,
    shown: string,
    above: readonly string[],
  ): Promise<void> {
    const { follow } = this.#packing
    const found = follow ? directory.statFollowed(name) : directory.lstat(name)
    if (found === null) {
      if (follow && directory.lstat(name) !== null)
        throw new Failure(`${directory.pathOf(name)} is a symbolic link that leads to nothing`)
      return this.#packing.changedAt(directory.pathOf(name))
    }
    if (found.isFile()) return this.#file(directory, name, shown)
    if (found.isSymbolicLink()) {
      const linkname = directory.readLink(name)
      await this.#write({ ...common(found), name: shown, type: 'symlink', linkname })
      return
    }
    if (!found.isDirectory())
      throw new Failure(`${directory.pathOf(name)} is ${kindOf(found)}, and no file, directory or symlink`)
    await this.#write({ ...common(found), name: `${shown}/`, type: 'directory' })
    const child = directory.child(name, follow)
    try {
      await this.directory(child, `${shown}/`, above)
    } finally {
      child.close()
    }
  }

  /** A tar says the size first: a small file is read before it does, and a large one that has shrunk since is filled up. */
  async #file(directory: HeldDirectory, name: string, shown: string): Promise<void> {
    const path = directory.pathOf(name)
    const fd = directory.openFile(name, this.#packing.follow)
    try {
      const before = fstatSync(fd, { bigint: true })
      const found = fstatSync(fd)
      const known = sizeOf(fd, before, path)
      const small =
        known === null || known <= smallBytes ? await whole(bytesOf(fd, known ?? mostMade + 1, path)) : null
      if (known === null && small !== null && small.length > mostMade)
        throw new Failure(
          `${path} has more than ${mostMade} bytes, and a size that only its end says: copy it by itself`,
        )
      const size = small?.length ?? found.size
      const header = { ...common(found), name: shown, type: 'file', size } as const
      const read = await this.#write(header, small === null ? bytesOf(fd, size, path) : [small])
      if (read < size) await this.#write(withCut(directoryEntry(directory, `${dirname(shown)}/`), read))
      if (hasChanged(fd, before) || read < (known ?? 0)) this.#packing.changedAt(path)
    } finally {
      closeSync(fd)
    }
  }

  /** Answers how many bytes there were. */
  async #write(header: Headers, pieces: AsyncIterable<Buffer> | Iterable<Buffer> = []): Promise<number> {
    const sink = this.#tar.entry(withByteNames(header))
    const done = once(sink, 'close')
    // Where it breaks off, whoever reads the tar hears of it.
    done.catch(() => undefined)
    const size = header.size ?? 0
    let sent = 0
    const write = async (piece: Buffer) => {
      if (!sink.write(piece)) await Promise.race([once(sink, 'drain'), done])
    }
    for await (const piece of pieces) {
      sent += piece.length
      await write(piece)
    }
    for (let left = size - sent; left > 0; left -= filling.length)
      await write(filling.subarray(0, Math.min(left, filling.length)))
    sink.end()
    await done
    return sent
  }
}

/** Names the top of a tree itself: its entry says the mode of a directory that is made for it. */
export const topName = './'

/**
 * What goes to the top of a tree: something in a directory, under the name `shown`; or with `name` null all that is in that, and
 * itself where `shown` is `topName`.
 */
export interface TreeRoot {
  readonly directory: HeldDirectory
  readonly name: string | null
  readonly shown: string
}

/** A tar of what these are, in their order. */
export function treeOf(roots: readonly TreeRoot[], packing: Packing): AsyncIterable<Buffer> {
  const tar = pack()
  const packer = new Packer(tar, packing)
  const fill = async () => {
    for (const { directory, name, shown } of roots)
      await (name === null ? packer.top(directory, shown) : packer.entry(directory, name, shown, []))
    tar.finalize()
  }
  fill().catch((error: Error) => tar.destroy(error))
  return tar
}
