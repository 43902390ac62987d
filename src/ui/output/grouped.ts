import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { compareNatural } from '../../core/selector/natural-order.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { sanitize } from '../text/sanitize.ts'
import type { OutputFormat } from './format.ts'
import type { Sink } from './sink.ts'

/** Output kept for folding, in characters over all hosts; past it hosts can't be compared any more. */
const maxKept = 256 * 1024 * 1024

/**
 * Equal output under its hosts, the largest group first, as `clush -b` shows it. Stderr passes live through `live`, which
 * also takes the output once too much of it came to be kept.
 */
export class GroupedOutput implements OutputFormat {
  readonly #stdout: Sink
  readonly #raw: boolean
  readonly #live: OutputFormat
  readonly #kept = new Map<string, string[]>()
  #size = 0

  constructor(options: { stdout: Sink; raw: boolean; live: OutputFormat }) {
    this.#stdout = options.stdout
    this.#raw = options.raw
    this.#live = options.live
  }

  async event(event: TaskEvent): Promise<void> {
    if (event.type !== 'output' || event.entry.stream === 'stderr' || this.#size > maxKept) {
      await this.#live.event(event)
      return
    }
    const { hostname, data } = event.entry
    const pieces = this.#kept.get(hostname) ?? []
    pieces.push(data)
    this.#kept.set(hostname, pieces)
    this.#size += data.length
    if (this.#size > maxKept) await this.#writeGroups()
  }

  async end(task: Task): Promise<void> {
    await this.#live.end(task)
    await this.#writeGroups()
  }

  async #writeGroups(): Promise<void> {
    const groups = new Map<string, string[]>()
    for (const [hostname, pieces] of this.#kept) {
      const text = pieces.join('')
      const group = groups.get(text)
      if (group === undefined) groups.set(text, [hostname])
      else group.push(hostname)
    }
    this.#kept.clear()
    const rule = '-'.repeat(15)
    const ordered = [...groups].sort(
      ([, a], [, b]) => b.length - a.length || compareNatural(a[0] ?? '', b[0] ?? ''),
    )
    for (const [text, hostnames] of ordered) {
      const count = hostnames.length > 1 ? ` (${hostnames.length})` : ''
      await this.#stdout.write(`${rule}\n${sanitize(foldNodeset(hostnames))}${count}\n${rule}\n`)
      const shown = this.#raw ? text : sanitize(text.replace(/\r\n?/g, '\n'))
      await this.#stdout.write(shown.endsWith('\n') || shown === '' ? shown : `${shown}\n`)
    }
  }
}
