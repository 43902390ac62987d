import { appendFileSync, statSync } from 'node:fs'
import type { TaskEvent } from '../../client/watch.ts'
import type { LogEntry } from '../../core/protocol/http/logs.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import { commandData, commandProperty, defuse, sanitize, sanitizeLine } from '../text/sanitize.ts'
import { showDuration } from '../text/time.ts'
import { BoundedText, keptPerHost } from './bounded-text.ts'
import type { FormatOptions, OutputFormat } from './format.ts'
import { LineAssembler, PhaseHeads } from './lines.ts'
import { type Failure, foldFailures } from './outcome.ts'

/** GitHub keeps ten error annotations per step. */
const maxAnnotations = 10
/** Last stderr lines of a failed host in its annotation, and the characters kept to find them. */
const quotedLines = 10
const quotedFrom = 4096

/** GitHub's limit for a step summary, in bytes. */
const largestSummary = 1024 * 1024
/** Characters at which a node set is cut, for hosts without a pattern in their names. */
const longestCell = 2000

interface Written {
  /** For its group, which is shown after it has ended. */
  readonly all: BoundedText
  readonly stderr: BoundedText
  /** For a lone host, which is shown live. */
  readonly lines: { readonly stdout: LineAssembler; readonly stderr: LineAssembler }
}

/**
 * Log of a GitHub Actions step: a group per host, an annotation per reason of failure, and a table in the
 * step summary. Output is defused, so that it contains no commands.
 */
export class GithubOutput implements OutputFormat {
  readonly #options: FormatOptions
  readonly #limit: number
  readonly #written = new Map<number, Written>()
  readonly #ended = new Set<number>()
  readonly #heads = new PhaseHeads()

  constructor(options: FormatOptions) {
    this.#options = options
    this.#limit = keptPerHost(options.hostCount)
  }

  event(event: TaskEvent): Promise<void> | void {
    if (event.type === 'output') return this.#output(event.entry)
    if (event.type === 'host' && event.result.completedAt !== null) return this.#group(event.result)
  }

  async end(task: Task): Promise<void> {
    for (const result of task.results) await this.#group(result)
    const failures = foldFailures(task)
    for (const { reason, results } of failures.slice(0, maxAnnotations)) {
      const hosts = foldNodeset(results.map(({ hostname }) => hostname))
      const isHarmless = results.every(
        ({ startedAt, status }) => status === 'SKIPPED' || (status === 'CANCELLED' && startedAt === null),
      )
      const head = `::${isHarmless ? 'warning' : 'error'} title=${commandProperty(sanitizeLine(hosts))}::`
      await this.#options.stdout.write(`${head}${commandData(defuse(reason + this.#quote(results[0])))}\n`)
    }
    try {
      appendStepSummary(process.env['GITHUB_STEP_SUMMARY'], task, failures)
    } catch (error) {
      this.#options.notice(`can't write the step summary: ${(error as Error).message}`)
    }
  }

  async #output(entry: LogEntry): Promise<void> {
    const { hostId, hostname, stream } = entry
    const key = this.#options.alone ? `${hostId} ${stream}` : String(hostId)
    const data = this.#options.raw ? entry.data : this.#heads.marked(key, entry)
    let written = this.#written.get(hostId)
    if (written === undefined) {
      written = {
        all: new BoundedText(this.#limit),
        stderr: new BoundedText(quotedFrom),
        lines: { stdout: new LineAssembler(), stderr: new LineAssembler() },
      }
      this.#written.set(hostId, written)
      if (this.#options.alone) await this.#write(`::group::${commandData(sanitizeLine(hostname))}\n`)
    }
    if (stream === 'stderr') written.stderr.push(entry.data)
    if (!this.#options.alone) {
      written.all.push(data)
      return
    }
    const lines = written.lines[stream].pushText(data)
    if (lines !== undefined) await this.#write(`${this.#shown(lines)}\n`)
  }

  async #group({ hostId, hostname, status }: TaskResult): Promise<void> {
    if (this.#ended.has(hostId)) return
    this.#ended.add(hostId)
    const written = this.#written.get(hostId)
    if (this.#options.alone && written !== undefined) {
      for (const { rest } of [written.lines.stdout, written.lines.stderr])
        if (rest !== '') await this.#write(`${this.#shown(rest)}\n`)
      await this.#write('::endgroup::\n')
      return
    }
    const outcome = status === 'SUCCESS' ? '' : ` (${status})`
    const title = commandData(sanitizeLine(hostname) + outcome)
    const shown = this.#shown(written?.all.toString() ?? '')
    written?.all.clear()
    const end = shown === '' || shown.endsWith('\n') ? '' : '\n'
    await this.#write(`::group::${title}\n${shown}${end}::endgroup::\n`)
  }

  #shown(text: string): string {
    const lines = text.replace(/\r\n?/g, '\n')
    return defuse(this.#options.raw ? lines : sanitize(lines))
  }

  #write(text: string): Promise<void> | void {
    return this.#options.stdout.write(text)
  }

  /** Last stderr lines of a failed host, because annotations are read without the log. */
  #quote(result: TaskResult | undefined): string {
    const written = result === undefined ? undefined : this.#written.get(result.hostId)
    if (result === undefined || written === undefined || written.stderr.isEmpty) return ''
    const lines = sanitize(written.stderr.toString().replace(/\r\n?/g, '\n')).trimEnd().split('\n')
    return `\n${sanitizeLine(result.hostname)}:\n${lines.slice(-quotedLines).join('\n')}`
  }
}

export function appendStepSummary(path: string | undefined, task: Task, failures: readonly Failure[]): void {
  if (path === undefined || path === '') return
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  const text = stepSummary(task, failures, largestSummary - size)
  if (size + Buffer.byteLength(text) <= largestSummary) appendFileSync(path, text)
}

/** Result of the task as a Markdown table: failed hosts by reason, then the others. */
export function stepSummary(task: Task, failures: readonly Failure[], room: number): string {
  const took = task.duration === null ? '' : ` in ${showDuration(task.duration)}`
  const rows: [string, string][] = failures.map(({ reason, results }) => [namesOf(results), reason])
  const good = task.results.filter(({ status }) => status === 'SUCCESS')
  if (good.length > 0) rows.push([namesOf(good), 'SUCCESS'])
  const head = `### ${cell(task.scriptName ?? 'rsm exec')}: ${task.status}

${task.hostCount} host${task.hostCount === 1 ? '' : 's'}${cell(took)}, task ${cell(task.taskId)}

| Hosts | Result |
| --- | --- |
`
  let text = head
  let left = room - Buffer.byteLength(head)
  for (const [at, [hosts, result]] of rows.entries()) {
    const row = `| ${cell(hosts)} | ${cell(result)} |\n`
    const cut = `\n${rows.length - at} more rows left out\n`
    left -= Buffer.byteLength(row)
    if (left < Buffer.byteLength(cut)) return `${text}${cut}\n`
    text += row
  }
  return `${text}\n`
}

/** Escapes text for a cell, so that nothing in it is Markdown, HTML or the end of the cell. */
function cell(text: string): string {
  const line = sanitizeLine(text)
  const cut = line.length > longestCell ? `${line.slice(0, longestCell)}...` : line
  return cut.replace(/[^A-Za-z0-9 .,;()%/+=-]/gu, (character) => `&#${character.codePointAt(0)};`)
}

const namesOf = (results: readonly TaskResult[]) => foldNodeset(results.map(({ hostname }) => hostname))
