import { constants } from 'node:fs'
import { type FileHandle, link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import { Mutex } from '../../../core/mutex.ts'
import {
  isDiskFull,
  isMissing,
  roomOf,
  syncDirectory,
  temporaryName,
  temporarySuffix,
} from '../../../disk/durable.ts'
import { Appender, piecesOf } from '../../../disk/files/open-file.ts'
import { type Files, WrongOffset } from '../ports/files.ts'

/** Folder of finished contents by digest, each a hard link to the files that have them. */
const contentName = 'content'

/** Bytes per read: fewer with many readers, because each has two buffers. */
const mostBytes = 256 * 1024
const leastBytes = 64 * 1024
const readersBytes = 4 * 1024 * 1024

const gone = (id: string, cause?: unknown) =>
  new RsmError('gone', `the bytes of file ${id} are not on the server's disk`, { cause })

/** One file per id in `directory`; equal finished ones are hard links to one file. */
export async function openDirectoryFiles(directory: string): Promise<Files> {
  const contents = join(directory, contentName)
  await mkdir(contents, { recursive: true, mode: 0o700 })
  /** Durable bytes when the writer of a file began; those that it adds are durable at its end. */
  const writers = new Map<string, number>()
  let readers = 0
  const pathOf = (id: string) => join(directory, id)
  const shared = createShared(contents)

  async function add(handle: FileHandle, offset: number, bytes: AsyncIterable<Uint8Array>) {
    const text = new Appender(handle.fd, { at: offset, isSynced: true })
    let end = offset
    try {
      try {
        for await (const piece of bytes) {
          await text.write(piece)
          end += piece.length
        }
      } finally {
        // Keep the bytes that came before a failure.
        await text.end()
      }
    } catch (error) {
      if (!isDiskFull(error)) throw error
      // Free the room: the server's own store is on this disk, and could not even record that the file is
      // removed.
      await text.settled()
      await handle.truncate(offset)
      throw new RsmError('unavailable', "the server's disk is full", { cause: error, retryAfter: 60 })
    } finally {
      await handle.datasync()
    }
    return end
  }

  async function size(id: string): Promise<number> {
    const handle = await open(pathOf(id), constants.O_RDWR).catch((error: unknown) => {
      if (isMissing(error)) return null
      throw error
    })
    if (handle === null) return 0
    try {
      // Bytes that an earlier process wrote may not be on disk yet.
      await handle.datasync()
      return (await handle.stat()).size
    } finally {
      await handle.close()
    }
  }

  /** Runs `work` as the only writer of a file of `end` bytes. Errors: `WrongOffset`. */
  async function writing<T>(id: string, end: number, work: (handle: FileHandle) => Promise<T>): Promise<T> {
    const other = writers.get(id)
    if (other !== undefined) throw new WrongOffset(other)
    writers.set(id, end)
    try {
      const found = await size(id)
      if (found !== end) throw new WrongOffset(found)
      const handle = await open(pathOf(id), constants.O_RDWR | constants.O_CREAT, 0o600)
      try {
        return await work(handle)
      } finally {
        await handle.close()
      }
    } finally {
      writers.delete(id)
    }
  }

  return {
    async size(id) {
      return writers.get(id) ?? (await size(id))
    },
    append: (id, offset, bytes) =>
      writing(id, offset, async (handle) => {
        if (offset === 0) await syncDirectory(directory)
        return add(handle, offset, bytes)
      }),
    cut: (id, end, to) =>
      writing(id, end, async (handle) => {
        await handle.truncate(to)
        await handle.datasync()
      }),
    async finish(id, content) {
      if ((await size(id)) === 0) await (await open(pathOf(id), 'a', 0o600)).close()
      if (content !== null) await shared.join(pathOf(id), content)
      await syncDirectory(directory)
    },
    async *read(id, from, to) {
      if (from === to) return
      const handle = await open(pathOf(id), 'r').catch((error: unknown) => {
        throw isMissing(error) ? gone(id, error) : error
      })
      readers += 1
      try {
        const pieceBytes = Math.max(leastBytes, Math.min(mostBytes, readersBytes / (2 * readers)))
        let at = from
        for await (const piece of piecesOf(handle.fd, { from, to, pieceBytes, isReused: true })) {
          at += piece.length
          yield piece
        }
        if (at < to) throw gone(id)
      } finally {
        readers -= 1
        await handle.close()
      }
    },
    remove: (id) => shared.remove(pathOf(id)),
    room: () => roomOf(directory),
    ids: () =>
      shared.alone(async () => {
        const names: string[] = []
        for (const name of await readdir(directory))
          if (name.endsWith(temporarySuffix)) await rm(join(directory, name), { force: true })
          else if (name !== contentName) names.push(name)
        return names
      }),
  }
}

/** Hard links to finished files, by content. */
function createShared(contents: string) {
  let names: Promise<Map<number, string>> | null = null
  const mutex = new Mutex()

  /** Names by inode; removes links that no file uses any more. */
  async function readNames(): Promise<Map<number, string>> {
    const found = new Map<number, string>()
    for (const name of await readdir(contents)) {
      const { ino, nlink } = await stat(join(contents, name))
      if (nlink === 1) await rm(join(contents, name))
      else found.set(ino, name)
    }
    return found
  }

  /** One at a time, so that a link exists until the step that uses it is done. */
  function locked<T>(work: (names: Map<number, string>) => Promise<T>): Promise<T> {
    return mutex.run(async () => {
      names ??= readNames()
      return work(await names)
    })
  }

  return {
    /** Runs `work` while no file is joined, so that any temporary name is of a killed process. */
    alone: <T>(work: () => Promise<T>): Promise<T> => locked(work),
    join: (path: string, content: string) =>
      locked(async (names) => {
        const common = join(contents, content)
        const own = await stat(path)
        if (names.get(own.ino) === content) return
        const other = await stat(common).catch((error: unknown) => {
          if (isMissing(error)) return null
          throw error
        })
        if (other === null) {
          await link(path, common)
          names.set(own.ino, content)
        } else if (other.size === own.size) {
          const temporary = temporaryName(path)
          await link(common, temporary)
          const replaced = await open(path)
          try {
            await rename(temporary, path)
          } finally {
            // Freeing the bytes of a large file takes time; do not wait for it.
            replaced.close().catch(() => undefined)
          }
        }
        await syncDirectory(contents)
      }),
    remove: (path: string) =>
      locked(async (names) => {
        const found = await stat(path).catch((error: unknown) => {
          if (isMissing(error)) return null
          throw error
        })
        if (found === null) return
        await rm(path)
        const name = names.get(found.ino)
        if (name === undefined || found.nlink > 2) return
        await rm(join(contents, name))
        names.delete(found.ino)
      }),
  }
}
