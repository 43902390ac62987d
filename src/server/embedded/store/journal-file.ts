import { fdatasync, fstatSync, ftruncate, write } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { RsmError } from '../../../core/errors.ts'
import { writeFileDurably } from '../../../disk/durable.ts'
import { formatVersion, journalName } from './files.ts'
import { encodeLine } from './line.ts'

/** The calls on which a write's durability hangs; tests put faults in their place. */
export interface Disk {
  /** Answers how many bytes were written, which may be fewer than given. */
  write(descriptor: number, data: Uint8Array, position: number): Promise<number>
  datasync(descriptor: number): Promise<void>
  truncate(descriptor: number, size: number): Promise<void>
}

export const realDisk: Disk = {
  write: (descriptor, data, position) =>
    new Promise((resolve, reject) => {
      write(descriptor, data, 0, data.length, position, (error, written) =>
        error === null ? resolve(written) : reject(error),
      )
    }),
  datasync: promisify(fdatasync),
  truncate: promisify(ftruncate),
}

/** As `disk`, and `synced` hears how many seconds each fdatasync took. */
export function timed(disk: Disk, synced: (seconds: number) => void): Disk {
  return {
    ...disk,
    async datasync(descriptor) {
      const start = performance.now()
      await disk.datasync(descriptor)
      synced((performance.now() - start) / 1000)
    },
  }
}

/** The journal was deleted under the running server. */
export class JournalDeleted extends RsmError {
  constructor(path: string) {
    super(
      'unavailable',
      `${path} was deleted under the running server: nothing can be written any more, and what was written since is gone`,
      { hint: 'stop the server, bring back its store from a backup, and start it anew' },
    )
  }
}

/** The open end of the journal. `size` is the last good offset: all before it is durable. */
export class JournalFile {
  readonly first: number
  size: number
  private readonly handle: FileHandle
  private readonly disk: Disk
  private readonly path: string

  private constructor(path: string, first: number, handle: FileHandle, size: number, disk: Disk) {
    this.path = path
    this.first = first
    this.handle = handle
    this.size = size
    this.disk = disk
  }

  /** Makes a segment whose first transaction will be `first`; its header is durable at once, so it is never torn. */
  static async create(directory: string, storeId: string, first: number, disk: Disk): Promise<JournalFile> {
    const header = encodeLine(JSON.stringify({ format: formatVersion, storeId, first }))
    await writeFileDurably(join(directory, journalName(first)), header)
    return JournalFile.open(directory, first, Buffer.byteLength(header), disk)
  }

  static async open(directory: string, first: number, size: number, disk: Disk): Promise<JournalFile> {
    const path = join(directory, journalName(first))
    return new JournalFile(path, first, await open(path, 'r+'), size, disk)
  }

  /** Resolves when the data is durable. After a rejection nothing of it counts; see `cutBack`. */
  async append(data: Uint8Array): Promise<void> {
    for (let done = 0; done < data.length; ) {
      done += await this.disk.write(this.handle.fd, data.subarray(done), this.size + done)
    }
    await this.disk.datasync(this.handle.fd)
    // Whoever deletes the file leaves it to us alone: what is written then is gone with this process.
    if (fstatSync(this.handle.fd).nlink === 0) throw new JournalDeleted(this.path)
    this.size += data.length
  }

  /** Takes away what a failed append left: a full disk writes short first. */
  async cutBack(): Promise<void> {
    await this.disk.truncate(this.handle.fd, this.size)
  }

  async close(): Promise<void> {
    await this.handle.close()
  }
}
