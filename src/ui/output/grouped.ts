import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { compareNatural } from '../../core/selector/natural-order.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { sanitize } from '../text/sanitize.ts'
import type { FormatOptions, OutputFormat } from './format.ts'
import { LiveOutput } from './live.ts'
import type { Sink } from './sink.ts'

/** Output kept for folding, in characters over all hosts; past it hosts can't be compared any more. */
const maxKept = 256 * 1024 * 1024
const rule = '-'.repeat(15)

/** Hosts that wrote the same. */
interface Group {
  readonly text: string
  readonly hostnames: string[]
}

/** `web[1-3] (3)`. */
function titleOf({ hostnames }: Group): string {
  const count = hostnames.length > 1 ? ` (${hostnames.length})` : ''
  return sanitize(foldNodeset(hostnames)) + count
}

/**
 * Equal output under its hosts, the largest group first, as `clush -b` shows it; with `diff` the others as what they change
 * in the first. Stderr passes live, as does the output once too much of it came to be kept.
 */
export class GroupedOutput implements OutputFormat {
  readonly #options: FormatOptions
  readonly #stdout: Sink
  readonly #live: OutputFormat
  readonly #kept = new Map<string, string[]>()
  #size = 0

  constructor(options: FormatOptions) {
    this.#options = options
    this.#stdout = options.stdout
    this.#live = new LiveOutput(options)
  }

  async event(event: TaskEvent): Promise<void> {
    if (event.type !== 'output' || event.entry.stream === 'stderr' || this.#size > maxKept) {
      await this.#live.event(event)
      return
    }
    const { hostname, data } = event.entry
    const pieces = this.#kept.get(hostname)
    if (pieces === undefined) this.#kept.set(hostname, [data])
    else pieces.push(data)
    this.#size += data.length
    if (this.#size <= maxKept) return
    this.#options.notice('too much output to be compared: what there is so far, then the rest as it comes')
    await this.#writeGroups()
  }

  async end(task: Task): Promise<void> {
    await this.#live.end(task)
    const silent = task.results.filter(
      ({ hostname, status }) => status === 'SUCCESS' && !this.#kept.has(hostname),
    )
    const isWhole = this.#size <= maxKept
    const others = this.#kept.size > 0
    await this.#writeGroups()
    // Whoever compares hosts wants to know of those that had nothing to say; where none had, there is nothing to compare.
    if (isWhole && others && silent.length > 0)
      this.#options.notice(`no output: ${sanitize(foldNodeset(silent.map(({ hostname }) => hostname)))}`)
  }

  #groups(): Group[] {
    const groups = new Map<string, string[]>()
    for (const [hostname, pieces] of this.#kept) {
      const text = pieces.join('')
      const hostnames = groups.get(text)
      if (hostnames === undefined) groups.set(text, [hostname])
      else hostnames.push(hostname)
    }
    this.#kept.clear()
    for (const hostnames of groups.values()) hostnames.sort(compareNatural)
    return [...groups]
      .map(([text, hostnames]) => ({ text, hostnames }))
      .sort(
        (a, b) =>
          b.hostnames.length - a.hostnames.length ||
          compareNatural(a.hostnames[0] ?? '', b.hostnames[0] ?? ''),
      )
  }

  async #writeGroups(): Promise<void> {
    const [first, ...others] = this.#groups()
    if (first === undefined) return
    await this.#write(first)
    if (!this.#options.diff || others.length === 0) {
      for (const group of others) await this.#write(group)
      return
    }
    const { Differ } = await import('./differ.ts')
    const differ = new Differ(titleOf(first), this.#shown(first.text), this.#stdout.colors ?? 'none')
    for (const group of others) {
      const difference = differ.unified(titleOf(group), this.#shown(group.text))
      if (difference === undefined) await this.#write(group)
      else await this.#stdout.write(difference)
    }
    if (differ.isSpent)
      this.#options.notice('too many or too great differences: the last ones are shown as whole output')
  }

  #shown(text: string): string {
    return this.#options.raw ? text : sanitize(text.replace(/\r\n?/g, '\n'))
  }

  async #write(group: Group): Promise<void> {
    await this.#stdout.write(`${rule}\n${titleOf(group)}\n${rule}\n`)
    const shown = this.#shown(group.text)
    await this.#stdout.write(shown.endsWith('\n') || shown === '' ? shown : `${shown}\n`)
  }
}
