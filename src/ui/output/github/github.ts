import type { TaskEvent } from '../../../client/watch.ts'
import type { Task, TaskResult } from '../../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../../core/selector/nodeset.ts'
import { foldFailures } from '../../task/outcome.ts'
import { sanitize, sanitizeLine } from '../../text/sanitize.ts'
import { BoundedText, keptPerHost } from '../bounded-text.ts'
import type { FormatOptions, OutputFormat } from '../format.ts'
import { appendStepSummary } from './step-summary.ts'
import { commandData, commandProperty, defuse } from './workflow-commands.ts'

/** GitHub keeps ten error annotations of a step. */
const maxAnnotations = 10
/** Lines of a failed host's last words in its annotation. */
const quotedLines = 10

/**
 * The log of a GitHub Actions step: a group a host as soon as the host has ended, an error annotation a reason of failure,
 * and a table in the step's summary. What hosts wrote commands nothing.
 */
export class GithubOutput implements OutputFormat {
  readonly #options: FormatOptions
  readonly #limit: number
  readonly #kept = new Map<number, BoundedText>()
  readonly #lastWords = new Map<number, BoundedText>()
  readonly #ended = new Set<number>()

  constructor(options: FormatOptions) {
    this.#options = options
    this.#limit = keptPerHost(options.hostCount)
  }

  event(event: TaskEvent): Promise<void> | void {
    if (event.type === 'output') {
      const { hostId, data } = event.entry
      this.#textOf(this.#kept, hostId, this.#limit).push(data)
      if (event.entry.stream === 'stderr') this.#textOf(this.#lastWords, hostId, 4096).push(data)
    }
    if (event.type === 'host' && event.result.completedAt !== null) return this.#group(event.result)
  }

  async end(task: Task): Promise<void> {
    for (const result of task.results) await this.#group(result)
    const failures = foldFailures(task)
    for (const { reason, results } of failures.slice(0, maxAnnotations)) {
      const hosts = foldNodeset(results.map(({ hostname }) => hostname))
      const isHarmless = results.every(({ status }) => status === 'SKIPPED' || status === 'CANCELLED')
      const head = `::${isHarmless ? 'warning' : 'error'} title=${commandProperty(sanitizeLine(hosts))}::`
      await this.#options.stdout.write(`${head}${commandData(defuse(reason + this.#quote(results[0])))}\n`)
    }
    try {
      appendStepSummary(process.env['GITHUB_STEP_SUMMARY'], task, failures)
    } catch (error) {
      this.#options.notice(`can't write the step summary: ${(error as Error).message}`)
    }
  }

  #textOf(texts: Map<number, BoundedText>, hostId: number, limit: number): BoundedText {
    let text = texts.get(hostId)
    if (text === undefined) {
      text = new BoundedText(limit)
      texts.set(hostId, text)
    }
    return text
  }

  async #group(result: TaskResult): Promise<void> {
    if (this.#ended.has(result.hostId)) return
    this.#ended.add(result.hostId)
    const { stdout, raw } = this.#options
    const text = (this.#kept.get(result.hostId)?.toString() ?? '').replace(/\r\n?/g, '\n')
    this.#kept.delete(result.hostId)
    const outcome = result.status === 'SUCCESS' ? '' : ` (${result.status})`
    const shown = defuse(raw ? text : sanitize(text))
    const end = shown === '' || shown.endsWith('\n') ? '' : '\n'
    await stdout.write(
      `::group::${commandData(sanitizeLine(result.hostname) + outcome)}\n${shown}${end}::endgroup::\n`,
    )
  }

  /** The last lines that a failed host wrote to stderr: an annotation is read without the log. */
  #quote(result: TaskResult | undefined): string {
    const words = this.#lastWords.get(result?.hostId ?? 0)
    if (result === undefined || words === undefined) return ''
    const lines = sanitize(words.toString().replace(/\r\n?/g, '\n')).trimEnd().split('\n')
    return `\n${sanitizeLine(result.hostname)}:\n${lines.slice(-quotedLines).join('\n')}`
  }
}
