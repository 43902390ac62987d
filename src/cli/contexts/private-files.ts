import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import { makeDirectory, whyUnwritable } from '../../disk/named-files.ts'

const lockName = 'lock'
const lockPatience = 10_000

const defaultBases = { CONFIG: '.config', STATE: '.local/state', CACHE: '.cache' }

/** JSON files that only their owner can read: a directory of mode 0700 with files of mode 0600. */
export class PrivateFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  prepare(): void {
    this.#changing(() => {
      makeDirectory(this.#directory, 0o700)
      chmodSync(this.#directory, 0o700)
      accessSync(this.#directory, constants.W_OK)
    })
  }

  /** Parses a file; passes undefined to `parse` if it is missing. Errors: `usage` with the path and the message of `parse`. */
  read<T>(name: string, parse: (value: unknown) => T): T {
    const path = join(this.#directory, name)
    try {
      return parse(this.#json(path))
    } catch (error) {
      const { message } = error as Error
      throw new RsmError('usage', `cannot read ${path}: ${message}`, {
        hint: 'fix it, or remove it and log in again',
      })
    }
  }

  #json(path: string): unknown {
    try {
      return JSON.parse(readFileSync(path, 'utf8')) as unknown
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      throw error
    }
  }

  /**
   * Runs a read-modify-write under an exclusive lock. Uses flock(1) on an open file, because that lock ends with the process.
   * Continues without a lock if flock fails, because a login matters more. Errors: `unavailable` after 10 s.
   */
  exclusively<T>(change: () => T): T {
    this.prepare()
    let lock = -1
    this.#changing(() => {
      lock = openSync(join(this.#directory, lockName), 'a', 0o600)
    })
    try {
      const { spawnSync } = process.getBuiltinModule('node:child_process')
      // A timeout instead of `-w`, which Busybox lacks.
      const { error } = spawnSync('flock', ['3'], {
        stdio: ['ignore', 'ignore', 'ignore', lock],
        timeout: lockPatience,
      })
      if (error !== undefined && 'code' in error && error.code === 'ETIMEDOUT')
        throw new RsmError('unavailable', `another rsm has been writing in ${this.#directory} for 10 s`, {
          hint: 'stop it and try again',
        })
      return change()
    } finally {
      closeSync(lock)
    }
  }

  /** Replaces the file atomically. Errors: `unavailable`. */
  write(name: string, value: unknown): void {
    this.prepare()
    const path = join(this.#directory, name)
    this.#changing(() => {
      // Keeps a symlink, e.g. into a dotfiles repository.
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
      throw new RsmError('unavailable', `cannot write in ${this.#directory}: ${whyUnwritable(error)}`, {
        hint: 'set XDG_CONFIG_HOME to a directory that you can write to, or use RSM_URL and RSM_TOKEN',
        cause: error,
      })
    }
  }
}

/** Base directory of the user's files of a kind (XDG base directories); ignores a relative path in the variable. */
export function baseDirectory(kind: keyof typeof defaultBases, env: NodeJS.ProcessEnv = process.env): string {
  const base = env[`XDG_${kind}_HOME`] ?? ''
  return isAbsolute(base) ? base : join(homedir(), defaultBases[kind])
}
