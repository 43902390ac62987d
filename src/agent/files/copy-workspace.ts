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
/** Names start at a random number, so that hosts of one task that share a directory never collide. */
const firstNumbers = 2 ** 47
/** Error of an order that was cancelled or timed out. */
export const cancelledMessage = 'it was stopped before it finished'

/**
 * Files of a file worker in the directory of its execution; opened early, because the user that it switches
 * to may have no access there.
 */
export class CopyWorkspace implements Temporaries {
  readonly taskId: string
  readonly #report: number
  readonly #parts: number
  /** Null for a cleanup of another worker's files: by then the order may be cancelled. */
  readonly #cancelToken: number | null
  /** Temporary files on disk, each once. */
  readonly #noted: Map<string, Part>
  /** Inodes of the files that this process created. */
  readonly #inodes = new Map<string, number>()
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

  /** Writes the report so far; fields of earlier reports stay unless `update` has them. */
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

  /** False once the agent cancelled the order or removed the directory of the execution. */
  get isAllowed(): boolean {
    return this.#cancelToken !== null && fstatSync(this.#cancelToken).nlink > 0
  }

  /** Call it right before anything takes its final place. Throws `Failure` if the order was cancelled. */
  checkCancelled(): void {
    if (!this.isAllowed) throw new Failure(cancelledMessage)
  }

  /** Creates a temporary file, after recording it. */
  create(directory: OpenDirectory): { name: string; fd: number } {
    return this.#unused(directory, (name) => directory.createFile(name))
  }

  /** Records an unused name for something that is not a file. */
  reserve(directory: OpenDirectory): string {
    return this.#unused(directory, (name) => (directory.lstat(name) === null ? 0 : null)).name
  }

  #unused(directory: OpenDirectory, make: (name: string) => number | null): { name: string; fd: number } {
    const { dev, ino } = directory.stat()
    for (let n = 0; n < maxNames; n += 1) {
      const name = `.rsm-${this.taskId}-${this.#first + n}.part`
      const part = { path: directory.path, dev, ino, name }
      const key = keyOf(part)
      const isNoted = this.#noted.has(key)
      if (!isNoted) {
        this.#noted.set(key, part)
        this.#write([part])
      }
      const fd = make(name)
      if (fd !== null) {
        if (fd > 0) this.#inodes.set(key, fstatSync(fd).ino)
        return { name, fd }
      }
      if (!isNoted || this.#isReplaced(key, directory, name)) this.#forget(key)
    }
    throw new Failure(`no unused temporary name in ${directory.path} after ${maxNames} attempts`)
  }

  /** Whether our file of this name was removed, and its name is now that of another file. */
  #isReplaced(key: string, directory: OpenDirectory, name: string): boolean {
    const own = this.#inodes.get(key)
    const found = directory.lstat(name)
    return own !== undefined && (found?.isFile() !== true || found.ino !== own)
  }

  /** The name belongs to another file, which the sweep must not remove. */
  #forget(key: string): void {
    this.#noted.delete(key)
    ftruncateSync(this.#parts, 0)
    this.#write([...this.#noted.values()])
  }

  #write(parts: readonly Part[]): void {
    writeSync(this.#parts, parts.map((part) => `${JSON.stringify(part)}\n`).join(''))
    fsyncSync(this.#parts)
  }

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

/** Does nothing if the path no longer leads to the recorded directory, because its location is unknown. */
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
