import { appendFileSync, statSync } from 'node:fs'
import type { TaskEvent } from '../../client/watch.ts'
import type { LogEntry } from '../../core/protocol/http/logs.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import { sanitize, sanitizeLine } from '../text/sanitize.ts'
import { showDuration } from '../text/time.ts'
import { BoundedText, keptPerHost } from './bounded-text.ts'
import type { FormatOptions, OutputFormat } from './format.ts'
import { LineAssembler, PhaseHeads } from './lines.ts'
import { type Failure, foldFailures } from './outcome.ts'
import { commandData, commandProperty, defuse } from './workflow-commands.ts'

/** GitHub keeps ten error annotations of a step. */
const maxAnnotations = 10
/** Lines of a failed host's last words in its annotation, and the characters in which they are looked for. */
const quotedLines = 10
const quotedFrom = 4096

/** GitHub refuses the summary of a step that is larger, in bytes. */
const largestSummary = 1024 * 1024
/** A node set of hosts without a pattern in their names is cut here, in characters. */
const longestCell = 2000

interface Written {
  /** For its group, which is shown when it has ended. */
  readonly all: BoundedText
  readonly stderr: BoundedText
  /** Of a lone host, which is shown as it writes. */
  readonly lines: { readonly stdout: LineAssembler; readonly stderr: LineAssembler }
}

/**
 * The log of a GitHub Actions step: a group a host, when it has ended (of a lone host, as it writes), an annotation a reason
 * of failure, and a table in the step's summary. What hosts wrote commands nothing.
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

  /** The last lines that a failed host wrote to stderr: an annotation is read without the log. */
  #quote(result: TaskResult | undefined): string {
    const written = result === undefined ? undefined : this.#written.get(result.hostId)
    if (result === undefined || written === undefined || written.stderr.isEmpty) return ''
    const lines = sanitize(written.stderr.toString().replace(/\r\n?/g, '\n')).trimEnd().split('\n')
    return `\n${sanitizeLine(result.hostname)}:\n${lines.slice(-quotedLines).join('\n')}`
  }
}

/** Appends it to the file that GitHub Actions names; without one nothing is written. */
export function appendStepSummary(path: string | undefined, task: Task, failures: readonly Failure[]): void {
  if (path === undefined || path === '') return
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  const text = stepSummary(task, failures, largestSummary - size)
  if (size + Buffer.byteLength(text) <= largestSummary) appendFileSync(path, text)
}

/** How the task went, as a table in Markdown: whoever failed by reason, then whoever did not. */
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

/** Text as a cell shows it, character for character: nothing in it is Markdown, HTML or the end of a cell. */
function cell(text: string): string {
  const line = sanitizeLine(text)
  const cut = line.length > longestCell ? `${line.slice(0, longestCell)}...` : line
  return cut.replace(/[^A-Za-z0-9 .,;()%/+=-]/gu, (character) => `&#${character.codePointAt(0)};`)
}

const namesOf = (results: readonly TaskResult[]) => foldNodeset(results.map(({ hostname }) => hostname))
