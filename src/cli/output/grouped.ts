import { createHash, type Hash } from 'node:crypto'
import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { sanitize } from '../text/sanitize.ts'
import { comparedText, type Group, groupsOf, titleOf } from './equal-output.ts'
import type { FormatOptions, OutputFormat, Sink } from './format.ts'
import { PhaseHeads } from './lines.ts'
import { LiveOutput } from './live.ts'

/** Characters kept for folding, over all hosts; above, hosts are no longer compared. */
const maxKept = 256 * 1024 * 1024
const rule = '-'.repeat(15)

/** Output of a host, and its running hash, for comparison without joining the pieces. */
interface Kept {
  readonly pieces: string[]
  readonly hash: Hash
}

/**
 * Equal output under its hosts, largest group first, as `clush -b` shows it; with `diff`, other groups as
 * differences from the first. Stderr is shown live, as is all output above the limit.
 */
export class GroupedOutput implements OutputFormat {
  readonly #options: FormatOptions
  readonly #stdout: Sink
  readonly #live: OutputFormat
  readonly #kept = new Map<string, Kept>()
  readonly #heads = new PhaseHeads()
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
    const { hostname } = event.entry
    const data = this.#options.raw ? event.entry.data : this.#heads.marked(hostname, event.entry)
    let kept = this.#kept.get(hostname)
    if (kept === undefined) {
      kept = { pieces: [], hash: createHash('sha256') }
      this.#kept.set(hostname, kept)
    }
    kept.pieces.push(data)
    kept.hash.update(data)
    this.#size += data.length
    if (this.#size <= maxKept) return
    this.#options.notice('too much output to compare: showing the groups so far, then the rest live')
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
    // If some hosts printed output, hosts that succeeded silently are listed too.
    if (isWhole && others && silent.length > 0)
      this.#options.notice(`no output: ${sanitize(foldNodeset(silent.map(({ hostname }) => hostname)))}`)
  }

  #groups(): Group[] {
    const written = new Map<string, Kept & { readonly hostnames: string[] }>()
    for (const [hostname, kept] of this.#kept) {
      const digest = kept.hash.digest('base64')
      const equal = written.get(digest)
      if (equal === undefined) written.set(digest, { ...kept, hostnames: [hostname] })
      else equal.hostnames.push(hostname)
    }
    this.#kept.clear()
    return groupsOf(
      [...written.values()].map(
        ({ pieces, hostnames }) => [this.#shown(pieces.join('')), hostnames] as const,
      ),
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
    const differ = new Differ(titleOf(first), first.shown, this.#stdout.colors ?? 'none')
    for (const group of others) {
      const difference = differ.unified(titleOf(group), group.shown)
      if (difference === undefined) await this.#write(group)
      else await this.#stdout.write(difference)
    }
    if (differ.isSpent)
      this.#options.notice('too many or too large differences: the last groups are shown in full')
  }

  #shown(text: string): string {
    return this.#options.raw ? text : comparedText(text)
  }

  async #write(group: Group): Promise<void> {
    await this.#stdout.write(`${rule}\n${titleOf(group)}\n${rule}\n`)
    const { shown } = group
    await this.#stdout.write(shown.endsWith('\n') || shown === '' ? shown : `${shown}\n`)
  }
}
