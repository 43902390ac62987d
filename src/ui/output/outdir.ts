import { createHash } from 'node:crypto'
import { accessSync, appendFileSync, constants, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskEvent } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import type { LogEntry, Stream, Task } from '../../core/protocol/http/tasks.ts'
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

/** A file a host and stream, `web1.out` and `web1.err`, with what the host wrote as it came; empty where it wrote nothing. */
export class OutdirOutput implements OutputFormat {
  readonly #path: string
  readonly #begun = new Set<string>()

  constructor(path: string) {
    this.#path = path
  }

  event(event: TaskEvent): void {
    if (event.type === 'output') this.#append(event.entry)
  }

  end(task: Task): void {
    // What is there of a former run would be taken for this one's.
    for (const { hostname } of task.results)
      for (const stream of ['stdout', 'stderr'] as const) this.#append({ hostname, stream, data: '' })
  }

  #append({ hostname, stream, data }: Pick<LogEntry, 'hostname' | 'stream' | 'data'>): void {
    const path = join(this.#path, `${fileNameOf(hostname)}.${suffixes[stream]}`)
    if (this.#begun.has(path)) {
      if (data !== '') appendFileSync(path, data)
      return
    }
    this.#begun.add(path)
    writeFileSync(path, data)
  }
}
