import { randomInt } from 'node:crypto'
import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../../disk/files/failure.ts'
import { OpenDirectory } from '../../disk/files/open-directory.ts'
import type { Temporaries } from '../../disk/files/replacement.ts'
import {
  cancelTokenName,
  type FileReport,
  type Part,
  partsName,
  readParts,
  reportBytes,
  reportName,
} from './order.ts'

const longestError = 4000
const maxNames = 100
/** Where the numbers of names begin, by chance: hosts of one task that share a directory never meet. */
const firstNumbers = 2 ** 47
/** Why nothing of an order is done any more. */
export const cancelledMessage = 'it was ended before it was done'

/**
 * What the process of an order for files keeps in the directory of its execution: opened while it may, as whoever it becomes may
 * not enter there.
 */
export class CopyWorkspace implements Temporaries {
  readonly taskId: string
  readonly #report: number
  readonly #parts: number
  /** Null for one that only removes what another has left: by then the order may be cancelled. */
  readonly #cancelToken: number | null
  /** Those that are on the disk, each once. */
  readonly #noted: Map<string, Part>
  readonly #first = randomInt(firstNumbers)
  readonly #notes = new Set<string>()
  #reported: FileReport = {}

  constructor(directory: string, taskId: string, what: 'work' | 'clean' = 'work') {
    this.taskId = taskId
    this.#noted = new Map(readParts(directory).map((part) => [keyOf(part), part]))
    this.#report = openSync(join(directory, reportName), 'r+')
    this.#parts = openSync(join(directory, partsName), constants.O_RDWR | constants.O_APPEND)
    this.#cancelToken = what === 'clean' ? null : openSync(join(directory, cancelTokenName), 'r')
  }

  /** Says how it went so far; fields of earlier reports stay unless `update` has them. */
  report(update: FileReport): void {
    this.#reported = { ...this.#reported, ...update }
    const { error, ...rest } = this.#reported
    const written = error === undefined ? rest : { ...rest, error: error.slice(0, longestError) }
    writeSync(this.#report, JSON.stringify(written).padEnd(reportBytes), 0)
  }

  note(sentence: string): void {
    if (!this.#notes.has(sentence)) process.stdout.write(`${sentence}\n`)
    this.#notes.add(sentence)
  }

  /** False once the agent has taken it back, as for a cancel, or has removed the directory of the execution. */
  get isAllowed(): boolean {
    return this.#cancelToken !== null && fstatSync(this.#cancelToken).nlink > 0
  }

  /** To be called right before anything takes its place. Throws `Failure` once the order was cancelled. */
  checkCancelled(): void {
    if (!this.isAllowed) throw new Failure(cancelledMessage)
  }

  /** A new temporary file, noted before it is made. */
  create(directory: OpenDirectory): { name: string; fd: number } {
    return this.#unused(directory, (name) => directory.createFile(name))
  }

  /** A name for what is no file, noted, that nothing has. */
  reserve(directory: OpenDirectory): string {
    return this.#unused(directory, (name) => (directory.lstat(name) === null ? 0 : null)).name
  }

  #unused(directory: OpenDirectory, make: (name: string) => number | null): { name: string; fd: number } {
    for (let n = 0; n < maxNames; n += 1) {
      const name = `.rsm-${this.taskId}-${this.#first + n}.part`
      this.#note(directory, name)
      const fd = make(name)
      if (fd !== null) return { name, fd }
      this.#forget(directory, name)
    }
    throw new Failure(`${directory.path} holds ${maxNames} files with names of this order`)
  }

  #note(directory: OpenDirectory, name: string): void {
    const { dev, ino } = directory.stat()
    const part = { path: directory.path, dev, ino, name }
    if (this.#noted.has(keyOf(part))) return
    this.#noted.set(keyOf(part), part)
    this.#write([part])
  }

  /** Somebody else's file has that name, and is not to be removed with ours: of those none is there while one is begun. */
  #forget(directory: OpenDirectory, name: string): void {
    const { dev, ino } = directory.stat()
    this.#noted.delete(keyOf({ dev, ino, name }))
    ftruncateSync(this.#parts, 0)
    this.#write([...this.#noted.values()])
  }

  #write(parts: readonly Part[]): void {
    writeSync(this.#parts, parts.map((part) => `${JSON.stringify(part)}\n`).join(''))
    fsyncSync(this.#parts)
  }

  /** Removes what temporary files are left, and with them the notes. */
  sweep(): void {
    for (const part of this.#noted.values()) removePart(part)
    this.#noted.clear()
    ftruncateSync(this.#parts, 0)
  }

  close(): void {
    for (const fd of [this.#report, this.#parts, this.#cancelToken]) if (fd !== null) closeSync(fd)
  }
}

const keyOf = ({ dev, ino, name }: Omit<Part, 'path'>) => `${dev} ${ino} ${name}`

/** Where its directory is not what its path leads to any more, nobody knows where it is. */
function removePart({ path, dev, ino, name }: Part): void {
  let directory: OpenDirectory
  try {
    directory = OpenDirectory.open(path)
  } catch {
    return
  }
  try {
    const found = directory.stat()
    if (found.dev === dev && found.ino === ino) directory.remove(name)
  } finally {
    directory.close()
  }
}
