import { accessSync, appendFileSync, constants, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskEvent } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import type { LogEntry, Stream } from '../../core/protocol/http/logs.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import type { OutputFormat } from './format.ts'

/** NAME_MAX, less the suffix. */
const longestName = 251
const suffixes: Record<Stream, string> = { stdout: 'out', stderr: 'err' }

/**
 * The name of a host as the name of a file. Registered names need no change; one that a server made up can't leave the
 * directory (S07), and a long one is told apart by its hash.
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

/** Makes the directory of `--outdir`. Errors: `usage` where nothing can be written there. */
export function prepareOutdir(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
    if (!statSync(path).isDirectory()) throw new Error('it is not a directory')
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new RsmError('usage', `can't write into --outdir ${path}: ${(error as Error).message}`)
  }
}

/** What is kept before it is written, so that lines of many hosts do not cost a file opened each; in characters. */
const mostPending = 1024 * 1024
/** How long it is kept at most, in milliseconds: somebody may read along. */
const longestPending = 200

/** A file a host and stream, `web1.out` and `web1.err`, with what the host wrote as it came; empty where it wrote nothing. */
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
    // What is there of a former run would be taken for this one's.
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
      if (!this.#begun.has(path)) writeFileSync(path, data)
      else if (data !== '') appendFileSync(path, data)
      this.#begun.add(path)
    }
    this.#pending.clear()
    this.#size = 0
  }
}
