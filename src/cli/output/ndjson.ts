import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { jsonText } from '../text/sanitize.ts'
import type { FormatOptions, OutputFormat, Sink } from './format.ts'

/**
 * One JSON object per line, live; output is exactly what the host wrote. Entries and results are inlined
 * beside `type`, tasks are under `task`. Each host's final result appears once; the last line is `end`.
 */
export class NdjsonOutput implements OutputFormat {
  readonly #stdout: Sink
  readonly #ended = new Set<number>()

  constructor({ stdout }: Pick<FormatOptions, 'stdout'>) {
    this.#stdout = stdout
  }

  event(event: TaskEvent): Promise<void> | void {
    switch (event.type) {
      case 'output':
        return this.#write({ type: 'output', ...event.entry })
      case 'host': {
        const { hostId, completedAt } = event.result
        if (this.#ended.has(hostId)) return
        if (completedAt !== null) this.#ended.add(hostId)
        return this.#write({ type: 'host', ...event.result })
      }
      case 'task':
        return this.#write({ type: 'task', task: event.task })
      case 'end':
        return
    }
  }

  async end(task: Task): Promise<void> {
    // A task that had already ended is reported without its hosts.
    for (const result of task.results)
      if (!this.#ended.has(result.hostId)) await this.#write({ type: 'host', ...result })
    await this.#write({ type: 'end', task })
  }

  #write(line: object): Promise<void> | void {
    return this.#stdout.write(`${jsonText(line)}\n`)
  }
}
