import { fstatSync } from 'node:fs'
import type { TaskEvent } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { isFinal, type TaskResult } from '../../core/tasks/task.ts'
import { transferParts } from '../files/shown.ts'
import type { ShowOptions } from '../flags/output.ts'
import { type OutputFormat, type Sink, sinkOf } from '../output/format.ts'
import { type FormatName, formats } from '../output/formats.ts'
import { OutdirOutput, prepareOutdir } from '../output/outdir.ts'
import { areTogether, type OutputFile, openOutputFile, refuseShared } from '../output/output-file.ts'
import { StatusLine } from '../output/status-line.ts'
import { defuse, sanitizeLine } from '../text/sanitize.ts'
import { isUtf8, isWatched } from '../text/screen.ts'
import { showDuration } from '../text/time.ts'
import { KnownTask, progressText } from './task-state.ts'

type Output = Extract<TaskEvent, { type: 'output' }>

/** Reasons that are held; further ones are shown at once. */
const mostReasons = 100

interface TaskDisplayOptions {
  readonly show: ShowOptions
  readonly quiet: boolean
  readonly progress: boolean
  readonly timestamps?: { readonly utc: boolean } | undefined
  /** A summary with the reasons of failures follows. */
  readonly summarised?: boolean
  /** The caller reports failures, as JSON. */
  readonly json?: boolean
}

/** A format written to the file system; its failure ends only itself. */
interface Kept {
  readonly path: string
  readonly format: FormatName | 'outdir'
  readonly file?: OutputFile
  output?: OutputFormat
}

/** `12 s`, `2 min 5 s`, `3 h 4 min`. */
const elapsed = (milliseconds: number) =>
  milliseconds < 60_000 ? `${Math.floor(milliseconds / 1000)} s` : showDuration(milliseconds)

/**
 * Output of one task: a format on stdout, others in files, and a status line. Files are opened before
 * anything starts; then come `begin`, events and `end`.
 */
export class TaskDisplay {
  readonly known: KnownTask = new KnownTask()
  readonly #options: TaskDisplayOptions
  #kept: readonly Kept[] = []
  #format: OutputFormat | undefined
  #status: StatusLine | undefined
  /** A closed stderr does not end a command. */
  #stderr: Sink = sinkOf(process.stderr, { dispensable: true })
  #unfinished = ''
  #failure: RsmError | undefined
  /** Held until the results of their hosts arrive. */
  #reasons: Output[] = []
  hasOutput = false

  constructor(options: TaskDisplayOptions) {
    this.#options = options
    const { outdir, files } = options.show
    if (outdir !== undefined) {
      prepareOutdir(outdir)
      this.#kept = [{ path: outdir, format: 'outdir' }]
    }
    try {
      refuseShared({ files, outdir, onStdout: options.show.format !== undefined })
      for (const { format, path } of files)
        this.#kept = [...this.#kept, { path, format, file: openOutputFile(path, formats[format].whole) }]
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Why a file is missing or incomplete. */
  get failure(): RsmError | undefined {
    return this.#failure
  }

  get isEmpty(): boolean {
    return this.#options.show.format === undefined && this.#kept.length === 0
  }

  /** The task was created. `alone`: only one host's output is shown. */
  async begin({ hostCount, alone }: { hostCount: number; alone: boolean }): Promise<void> {
    const { show, quiet, progress, timestamps } = this.#options
    const { diff, prefix, raw } = show
    const common = { hostCount, alone, diff, prefix, raw, timestamps }
    const notice = (text: string) => this.notice(text)
    let stdout = sinkOf(process.stdout)
    if (process.stderr.isTTY) {
      const isDrawn = progress && !quiet && isWatched() && this.#hasRoom()
      const began = performance.now()
      const text = () => (isDrawn ? this.#statusText(performance.now() - began) : '')
      this.#status = new StatusLine(process.stderr, text)
      stdout = this.#status.guard(stdout)
      this.#stderr = this.#status.guard(this.#stderr)
    }
    const stderr = this.#stderr
    const unfinished = (text: string) => {
      this.#unfinished = text
    }
    if (show.format !== undefined)
      this.#format = await formats[show.format].open({
        ...common,
        stdout,
        stderr,
        together: areTogether(),
        notice,
        unfinished,
      })
    for (const kept of this.#kept) {
      if (kept.format === 'outdir') kept.output = new OutdirOutput(kept.path)
      else if (kept.file !== undefined) {
        const { sink } = kept.file
        const both = { stdout: sink, stderr: sink, together: true }
        kept.output = await formats[kept.format].open({ ...common, ...both, notice })
      }
    }
  }

  async event(event: TaskEvent): Promise<void> {
    this.known.event(event)
    if (event.type === 'output') this.hasOutput = true
    if (event.type === 'output' && this.#isReason(event) && this.#reasons.length < mostReasons)
      this.#reasons.push(event)
    else await this.#format?.event(event)
    if (event.type === 'host' && isFinal(event.result.status)) await this.#showReasons([event.result])
    await this.#eachFile(async ({ output }) => output?.event(event))
  }

  /** Whether this explains why files were not copied, which the summary reports once for all such hosts. */
  #isReason({ entry }: Output): boolean {
    const { show, summarised } = this.#options
    const isForPeople = show.format === 'live' || show.format === 'grouped'
    return summarised === true && isForPeople && entry.stream === 'stderr' && this.known.isTransfer
  }

  /** Shows the reasons of hosts without an error in their result: a copy did not start, or crashed. */
  async #showReasons(results: readonly TaskResult[]): Promise<void> {
    const errors = new Map(results.map(({ hostname, error }) => [hostname, error]))
    const reasons = this.#reasons
    this.#reasons = reasons.filter(({ entry }) => !errors.has(entry.hostname))
    for (const event of reasons)
      if (errors.get(event.entry.hostname) === null) await this.#format?.event(event)
  }

  /** The task with its results, final or as far as known. */
  async end(task: Task): Promise<void> {
    this.#status?.answered()
    await this.#showReasons(task.results)
    await this.#format?.end(task)
    await this.#eachFile(async ({ output, file }) => {
      await output?.end(task)
      await file?.finish()
    })
    this.#kept = []
    this.close()
  }

  close(): void {
    this.#status?.end()
    for (const { file } of this.#kept) file?.discard()
    this.#kept = []
  }

  notice(text: string): void {
    if (!this.#options.quiet) this.warn(text)
  }

  warn(text: string): void {
    this.#say(`rsm: ${text}`)
  }

  /** Shows a command for the line above. */
  next(command: string): void {
    if (!this.#options.quiet) this.#say(`     ${command}`)
  }

  /** Writes one line. Sanitized, because names and reasons come from hosts. */
  #say(text: string): void {
    const line = `${sanitizeLine(text)}\n`
    void this.#stderr.write(this.#options.show.format === 'github' ? defuse(line) : line)
  }

  /** Holds output while a question is on the terminal, until `answered`. */
  ask(): void {
    this.#status?.ask()
  }

  answered(): void {
    this.#status?.answered()
  }

  async #eachFile(work: (kept: Kept) => Promise<void>): Promise<void> {
    for (const kept of this.#kept) {
      try {
        await work(kept)
      } catch (error) {
        const message = `can't write ${kept.path}: ${(error as Error).message}`
        const code = error instanceof RsmError ? error.code : 'unavailable'
        this.#failure ??= new RsmError(code, message, { cause: error })
        this.#kept = this.#kept.filter((other) => other !== kept)
        kept.file?.discard()
        if (this.#options.json !== true) this.warn(message)
      }
    }
  }

  /** Whether no other writer shares the terminal: a host with raw output, or a reader of our stdout. */
  #hasRoom(): boolean {
    const { raw, format } = this.#options.show
    if ((raw && format !== undefined) || process.env['TERM'] === 'dumb') return false
    const stdout = fstatSync(1)
    return !stdout.isFIFO() && !stdout.isSocket()
  }

  #statusText(milliseconds: number): string {
    const { counts, transfer } = this.known
    const separator = isUtf8() ? '·' : '|'
    const parts = [counts === undefined ? 'starting' : progressText(counts), elapsed(milliseconds)]
    const isMoving = transfer && (transfer.total === null || transfer.bytes < transfer.total)
    if (isMoving) parts.push(...transferParts(transfer.bytes, transfer.total, transfer.bytesPerSecond))
    if (this.#unfinished !== '') parts.push(this.#unfinished)
    return parts.join(` ${separator} `)
  }
}
