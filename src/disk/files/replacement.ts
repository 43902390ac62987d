import { createHash } from 'node:crypto'
import { closeSync, fsync, type Stats } from 'node:fs'
import { promisify } from 'node:util'
import { Appender } from '../appender.ts'
import { type Attributes, apply } from './attributes.ts'
import { codeOf, Failure, refusedBy } from './failure.ts'
import { type HeldDirectory, kindOf } from './held-directory.ts'
import { bytesOf } from './reading.ts'
import type { Temporaries } from './temporaries.ts'
import { readSmall } from './would.ts'

const syncing = promisify(fsync)
/** Bytes of a file name, on all usual file systems. */
const longestName = 255

/** What stands in the place that a file is to take; null where nothing does. Throws `Failure` for what is not replaced. */
export function formerOf(directory: HeldDirectory, name: string): Stats | null {
  const found = directory.lstat(name)
  if (found === null || found.isFile() || found.isSymbolicLink()) return found
  throw new Failure(`${directory.pathOf(name)} is ${kindOf(found)}, which no file takes the place of`)
}

/** Whether a file of at most 1 MiB holds these bytes; false where this user may not read it. */
export function isSameText(directory: HeldDirectory, name: string, bytes: Buffer): boolean {
  try {
    return readSmall(directory, name).equals(bytes)
  } catch (error) {
    if (codeOf(error) === 'EACCES') return false
    throw error
  }
}

/** Null where this user may not read it. */
export async function sha256In(directory: HeldDirectory, name: string): Promise<string | null> {
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

/** The name of what is kept of a file that is replaced: whole characters, and at most 255 bytes. */
export function backupName(name: string, taskId: string): string {
  const ending = `.rsm-${taskId}`
  const kept = Array.from(name)
  while (Buffer.byteLength(kept.join('') + ending) > longestName) kept.pop()
  return kept.join('') + ending
}

/** A file that is being made beside the one whose place it takes. */
export class Replacement {
  readonly #desk: Temporaries
  readonly #directory: HeldDirectory
  readonly #name: string
  readonly #temporary: string
  readonly #fd: number
  readonly #text: Appender
  #isPlaced = false

  constructor(desk: Temporaries, directory: HeldDirectory, name: string) {
    this.#desk = desk
    this.#directory = directory
    this.#name = name
    const { name: temporary, fd } = desk.create(directory)
    this.#temporary = temporary
    this.#fd = fd
    this.#text = new Appender(fd, { isSynced: true })
  }

  async write(piece: Buffer): Promise<void> {
    await this.#appended(this.#text.write(piece))
  }

  /** Takes the place, whole and for good. Throws `Failure` where the agent has taken its leave back. */
  async commit(attributes: Attributes, { keepsFormer }: { keepsFormer: boolean }): Promise<void> {
    await this.#appended(this.#text.end())
    apply(attributes, this.#fd, this.#path)
    try {
      await syncing(this.#fd)
    } catch (error) {
      throw refusedBy(error, this.#path, 'fsync')
    }
    this.#desk.assertLeave()
    const former = formerOf(this.#directory, this.#name)
    if (keepsFormer && former !== null)
      this.#directory.link(this.#name, backupName(this.#name, this.#desk.taskId))
    this.#directory.rename(this.#temporary, this.#name)
    this.#isPlaced = true
    this.#desk.report({ changed: true })
  }

  /** To be called in any case: a temporary file that took no place goes. */
  async close(): Promise<void> {
    await this.#text.settled()
    closeSync(this.#fd)
    if (!this.#isPlaced) this.#directory.remove(this.#temporary)
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
