import type { TaskEvent } from '../../client/watch.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { isFinal, type TaskResult } from '../../core/tasks/task.ts'
import { sanitizeLine } from '../text/sanitize.ts'

/** Milliseconds over which hosts are reported together, because the server reports them one by one. */
const gathered = 250

type Silent = Pick<TaskResult, 'hostId' | 'hostname' | 'error' | 'status'>

/** The `error` of an unfinished host says why it is silent. */
const isSilent = ({ status, error }: Silent) => !isFinal(status) && error !== null

/** `web[008-013] (6 hosts): agent not connected; …`: one line per reason, most hosts first. */
export function silentLines(results: Iterable<Silent>): string[] {
  const alike = new Map<string, string[]>()
  for (const result of results) {
    if (!isSilent(result)) continue
    const reason = sanitizeLine(result.error ?? '')
    alike.set(reason, [...(alike.get(reason) ?? []), result.hostname])
  }
  return [...alike]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([reason, names]) => {
      const count = names.length === 1 ? '' : ` (${names.length} hosts)`
      return `${sanitizeLine(foldNodeset(names))}${count}: ${reason}`
    })
}

export class SilentHosts {
  readonly #notify: (line: string) => void
  /** Last report per host, because events repeat after a lost connection. */
  readonly #reported = new Map<number, string | null>()
  readonly #news = new Map<number, Silent>()
  #timer: NodeJS.Timeout | undefined

  constructor(notify: (line: string) => void) {
    this.#notify = notify
  }

  event(event: TaskEvent): void {
    if (event.type !== 'host') return
    const { hostId, error } = event.result
    this.#news.delete(hostId)
    if (!isSilent(event.result) || this.#reported.get(hostId) === error) return
    this.#news.set(hostId, event.result)
    this.#timer ??= setTimeout(() => this.#report(), gathered)
  }

  /** Drops pending reports: the end of the task covers them. */
  close(): void {
    clearTimeout(this.#timer)
  }

  #report(): void {
    this.#timer = undefined
    for (const line of silentLines(this.#news.values())) this.#notify(line)
    for (const [hostId, { error }] of this.#news) this.#reported.set(hostId, error)
    this.#news.clear()
  }
}
