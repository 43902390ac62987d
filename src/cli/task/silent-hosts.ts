import type { TaskEvent } from '../../client/watch.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { isFinal, type TaskResult } from '../../core/tasks/task.ts'
import { sanitizeLine } from '../text/sanitize.ts'

/** Hosts of one rack are reported together, because the server reports them one by one. In milliseconds. */
const gathered = 250

type Silent = Pick<TaskResult, 'hostId' | 'hostname' | 'error' | 'status'>

/** While a host has not ended, its `error` says why it is silent. */
const isSilent = ({ status, error }: Silent) => !isFinal(status) && error !== null

/** `web[008-013] (6 hosts): agent not connected; …`, a line a reason, most hosts first. */
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

/** Says for which hosts a task waits, and why. */
export class SilentHosts {
  readonly #notify: (line: string) => void
  /** What was last said of each: an event comes again after a lost connection. */
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

  /** What has not been said yet, the end of the task says. */
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
