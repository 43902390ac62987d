import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { RsmError } from '../core/errors.ts'
import { makeDirectory } from '../disk/make-directory.ts'

const unwritable: Readonly<Record<string, string>> = {
  EACCES: 'you may not',
  EPERM: 'it belongs to somebody else',
  EROFS: 'it cannot be written to',
  ENOENT: 'no directory can be made there',
  ENOTDIR: 'a part of this path is a file',
  EEXIST: 'there is a file of that name',
  ENOSPC: 'the disk is full',
}

/** JSON files that only their owner may read: a directory of mode 0700 with files of mode 0600. */
export class PrivateFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Makes the directory. Errors: `unavailable` where nothing can be written there. */
  prepare(): void {
    this.#changing(() => {
      makeDirectory(this.#directory, 0o700)
      chmodSync(this.#directory, 0o700)
      accessSync(this.#directory, constants.W_OK)
    })
  }

  /** Undefined where there is no such file. Errors: `usage` where it holds no JSON or can't be read. */
  read(name: string): unknown {
    const path = join(this.#directory, name)
    try {
      return JSON.parse(readFileSync(path, 'utf8')) as unknown
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      throw new RsmError('usage', `cannot read ${path}: ${message}`, {
        hint: 'mend it, or remove it and log in again',
      })
    }
  }

  /** Replaces the file as a whole. Errors: `unavailable`. */
  write(name: string, value: unknown): void {
    this.prepare()
    const path = join(this.#directory, name)
    this.#changing(() => {
      // A file that is linked into a collection of settings stays a link.
      const place = existsSync(path) ? realpathSync(path) : path
      const temporary = `${place}.${process.pid}`
      try {
        writeFileSync(temporary, `${JSON.stringify(value, undefined, 2)}\n`, { mode: 0o600 })
        renameSync(temporary, place)
      } finally {
        rmSync(temporary, { force: true })
      }
    })
  }

  #changing(change: () => void): void {
    try {
      change()
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      throw new RsmError(
        'unavailable',
        `cannot write in ${this.#directory}: ${unwritable[code] ?? message}`,
        {
          hint: 'set XDG_CONFIG_HOME to a directory of yours, or do without: RSM_URL and RSM_TOKEN',
          cause: error,
        },
      )
    }
  }
}
