import type { Client } from '../../client/client.ts'
import type { TaskEvent } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { isFinal, type TaskResult } from '../../core/tasks/task.ts'
import { standingOf } from '../hosts/standing.ts'
import { tellsHostState } from '../output/outcome.ts'
import { sanitizeLine, shellWord } from '../text/sanitize.ts'

/** Milliseconds over which hosts are reported together, because the server reports them one by one. */
const gathered = 250
/** Hosts looked up on the server because their results do not say why they are unreachable. */
const mostAsked = 3

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

interface Explanation {
  /** `web1 is OFFLINE: never heard`, for those whose result does not say so. */
  readonly lines: readonly string[]
  /** Command to learn more; undefined if all hosts are back. */
  readonly next: string | undefined
}

/** Why hosts were unreachable, and one command that examines all of them. */
export async function explainUnreachable(
  client: Client,
  results: readonly Pick<TaskResult, 'hostId' | 'hostname' | 'error'>[],
): Promise<Explanation> {
  const away = results.filter(tellsHostState).map(({ hostname }) => hostname)
  const lines: string[] = []
  const silent = results.filter((result) => !tellsHostState(result))
  for (const { hostId, hostname } of silent.slice(0, mostAsked)) {
    const host = await client.hosts.get(hostId).catch((error: unknown) => {
      if (error instanceof RsmError) return undefined
      throw error
    })
    if (host === undefined || host.statusReason === null) continue
    lines.push(`${hostname} is ${standingOf(host)}`)
    away.push(hostname)
  }
  const next = away.length === 0 ? undefined : `rsm hosts doctor ${shellWord(foldNodeset(away))}`
  return { lines, next }
}
