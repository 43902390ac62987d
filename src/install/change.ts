import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { RsmError } from '../core/errors.ts'
import { modeBits } from '../disk/files/attributes.ts'
import { makeDirectory } from '../disk/named-files.ts'

export interface Change {
  /** For people: `write /etc/rsm/agent.env`. */
  readonly what: string
  /** `done`: nothing to do. `new`: creates something. `differs`: replaces something, which needs consent. */
  readonly state: 'done' | 'new' | 'differs'
  /** Removed and added lines, with - and + before them; never secrets. */
  readonly lines: readonly string[]
  apply(): void
}

interface FileSpec {
  readonly path: string
  readonly text: string
  readonly mode: number
  /** Never shows its content, and replaces it without asking. */
  readonly isSecret?: boolean
}

export function fileChange({ path, text, mode, isSecret = false }: FileSpec): Change {
  const before = readText(path)
  const isSame = before === text && (statSync(path).mode & modeBits) === mode
  return {
    what: `write ${path}`,
    state: isSame ? 'done' : before === null || isSecret || before === text ? 'new' : 'differs',
    lines: isSecret ? [] : difference(before ?? '', text),
    apply: () =>
      explained(path, () => {
        makeDirectory(dirname(path), 0o755)
        const temporary = `${path}.rsm-new`
        writeFileSync(temporary, text, { mode })
        chmodSync(temporary, mode)
        renameSync(temporary, path)
      }),
  }
}

/** Replaces a program by rename, so that running processes keep the old one. */
export function programChange(from: string, path: string): Change {
  return {
    what: `install ${path}`,
    state: 'new',
    lines: [],
    apply: () =>
      explained(path, () => {
        makeDirectory(dirname(path), 0o755)
        const temporary = `${path}.rsm-new`
        try {
          copyFileSync(from, temporary)
          chmodSync(temporary, 0o755)
          renameSync(temporary, path)
        } finally {
          rmSync(temporary, { force: true })
        }
      }),
  }
}

export function directoryChange(
  path: string,
  mode: number,
  owner: () => { uid: number; gid: number } | null = () => null,
): Change {
  const state = existsSync(path) ? 'done' : 'new'
  return {
    what: `create ${path}`,
    state,
    lines: [],
    apply: () =>
      explained(path, () => {
        makeDirectory(dirname(path), 0o755)
        makeDirectory(path, mode)
        const account = owner()
        if (account !== null) chownSync(path, account.uid, account.gid)
      }),
  }
}

/** The system account of this name, from any source; null if it does not exist. */
export function accountOf(name: string): { uid: number; gid: number } | null {
  try {
    const words = ['passwd', name]
    const line = execFileSync('getent', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const [, , uid, gid] = line.split(':')
    return { uid: Number(uid), gid: Number(gid) }
  } catch {
    return null
  }
}

export function accountChange(name: string, home: string): Change {
  return {
    what: `create the user ${name}`,
    state: accountOf(name) === null ? 'new' : 'done',
    lines: [],
    apply() {
      const words = ['--system', '--user-group', '--home-dir', home, '--no-create-home']
      try {
        execFileSync('useradd', [...words, '--shell', '/usr/sbin/nologin', name], {
          stdio: ['ignore', 'ignore', 'pipe'],
        })
      } catch (error) {
        const { stderr } = error as { stderr?: Buffer }
        throw new RsmError(
          'unavailable',
          `cannot create the user ${name}: ${String(stderr ?? error).trim()}`,
          {
            hint: `create it by hand and run this again: useradd --system --user-group ${name}`,
            cause: error,
          },
        )
      }
    },
  }
}

/** Text of a file; null if it does not exist, or this user may not read it. */
export function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return null
    throw new RsmError('unavailable', `cannot read ${path}: ${message}`, { cause: error })
  }
}

/** Removed and added lines, ignoring their order. */
function difference(before: string, after: string): string[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  const gone = old.filter((line) => line !== '' && !now.includes(line)).map((line) => `- ${line}`)
  return [...gone, ...now.filter((line) => line !== '' && !old.includes(line)).map((line) => `+ ${line}`)]
}

/** Errors: `unavailable`, with the path and a hint. */
function explained(path: string, act: () => void): void {
  try {
    act()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!(error instanceof Error) || code === undefined) throw error
    const hint =
      code === 'EROFS'
        ? 'the file system is read-only: install the program elsewhere, such as --prefix /opt/rsm'
        : code === 'EACCES' || code === 'EPERM'
          ? 'run this as root (sudo), or with --user'
          : code === 'ENOSPC'
            ? 'the disk is full: make room and run this again'
            : undefined
    throw new RsmError('unavailable', `cannot write ${path}: ${message}`, {
      cause: error,
      ...(hint && { hint }),
    })
  }
}
