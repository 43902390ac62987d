import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { TaskEvent } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import type { LogEntry } from '../../core/protocol/http/logs.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import type { Stream } from '../../core/tasks/task.ts'
import { makeNamedDirectory } from '../input/named-path.ts'
import type { OutputFormat } from './format.ts'

/** NAME_MAX minus the suffix. */
const longestName = 251
const suffixes: Record<Stream, string> = { stdout: 'out', stderr: 'err' }

/**
 * Registered names stay unchanged; an invented one cannot leave the directory (S07), a long one gets a hash.
 */
export function fileNameOf(hostname: string): string {
  const safe = hostname.replace(/[^A-Za-z0-9._-]|^[.-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
  )
  if (safe.length <= longestName) return safe
  const { createHash } = process.getBuiltinModule('node:crypto')
  const hash = createHash('sha256').update(hostname).digest('hex').slice(0, 16)
  return `${safe.slice(0, longestName - hash.length - 1)}-${hash}`
}

/** Whether a file name may be that of a host. */
export function isOutdirName(name: string): boolean {
  return Object.values(suffixes).some((suffix) => name.endsWith(`.${suffix}`))
}

/** Errors: `usage` if it is not writable, or an entry named like an output file is not a regular file. */
export function prepareOutdir(path: string): void {
  makeNamedDirectory(path, '--outdir')
  const refused = (why: string) => new RsmError('usage', `can't write into --outdir ${path}: ${why}`)
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch {
    throw refused('permission denied')
  }
  let odd: string | undefined
  try {
    odd = readdirSync(path, { withFileTypes: true }).find(
      (entry) => !entry.isFile() && isOutdirName(entry.name),
    )?.name
  } catch {
    // A writable directory may be unlistable; files are checked when opened.
  }
  if (odd !== undefined) throw refused(`${odd} in it is not a regular file`)
}

/** Only regular files: opening a pipe would wait for a reader, and a link may lead out of the directory. */
function openRegular(path: string, begins: boolean): number {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants
  const notRegular = () => new Error(`${path} is not a regular file`)
  let fd: number
  try {
    fd = openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0o666)
  } catch (error) {
    // A link, a pipe without a reader, a directory.
    throw ['ELOOP', 'ENXIO', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
      ? notRegular()
      : error
  }
  try {
    if (!fstatSync(fd).isFile()) throw notRegular()
    if (begins) ftruncateSync(fd)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** Characters buffered before writing, so that lines of many hosts do not each open a file. */
const mostPending = 1024 * 1024
/** Milliseconds that output is buffered at most, because a person may follow the file. */
const longestPending = 200

/** Files per host and stream, `web1.out` and `web1.err`, with output verbatim; empty if there was none. */
export class OutdirOutput implements OutputFormat {
  readonly #path: string
  readonly #begun = new Set<string>()
  readonly #pending = new Map<string, string>()
  #size = 0
  #later: NodeJS.Timeout | undefined
  #failure: Error | undefined

  constructor(path: string) {
    this.#path = path
  }

  event(event: TaskEvent): void {
    if (event.type !== 'output') return
    this.#append(event.entry)
    if (this.#failure !== undefined || this.#size > mostPending) this.#write()
    else
      this.#later ??= setTimeout(() => {
        try {
          this.#write()
        } catch (error) {
          this.#failure = error as Error
        }
      }, longestPending)
  }

  end(task: Task): void {
    // Truncate files of an earlier run, which would be mistaken for this one's.
    for (const { hostname } of task.results)
      for (const stream of ['stdout', 'stderr'] as const) this.#append({ hostname, stream, data: '' })
    this.#write()
  }

  #append({ hostname, stream, data }: Pick<LogEntry, 'hostname' | 'stream' | 'data'>): void {
    const path = join(this.#path, `${fileNameOf(hostname)}.${suffixes[stream]}`)
    this.#pending.set(path, (this.#pending.get(path) ?? '') + data)
    this.#size += data.length
  }

  #write(): void {
    clearTimeout(this.#later)
    this.#later = undefined
    if (this.#failure !== undefined) throw this.#failure
    for (const [path, data] of this.#pending) {
      const begins = !this.#begun.has(path)
      if (!begins && data === '') continue
      const fd = openRegular(path, begins)
      try {
        writeFileSync(fd, data)
      } finally {
        closeSync(fd)
      }
      this.#begun.add(path)
    }
    this.#pending.clear()
    this.#size = 0
  }
}
