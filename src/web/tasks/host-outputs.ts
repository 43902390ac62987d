import type { LogEntry } from '../../core/protocol/http/logs.ts'
import { comparedText, type Group, groupsOf } from '../../ui/output/equal-output.ts'
import { PhaseHeads } from '../../ui/output/phase-heads.ts'

/** Output that is kept for folding, in characters over all hosts: a browser can't hold all that scripts may say. */
const mostKept = 64 * 1024 * 1024

/** What hosts wrote, from the beginning on, and which of them wrote the same. */
export class HostOutputs {
  readonly #pieces = new Map<string, Record<LogEntry['stream'], string[]>>()
  readonly #heads = new PhaseHeads()
  #size = 0

  /** Too much came to compare hosts. */
  get isSpent(): boolean {
    return this.#size > mostKept
  }

  push(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      const { hostname, stream } = entry
      const data = this.#heads.marked(`${hostname} ${stream}`, entry)
      const pieces = this.#pieces.get(hostname) ?? { stdout: [], stderr: [] }
      this.#pieces.set(hostname, pieces)
      pieces[stream].push(data)
      this.#size += data.length
    }
    if (this.isSpent) this.#pieces.clear()
  }

  /** Equal output with its hosts, the largest group first; `hostnames` are those of the task, also of hosts that were silent. */
  groups(hostnames: readonly string[]): Group[] {
    return groupsOf(hostnames.map((hostname) => [this.#shown(hostname), [hostname]]))
  }

  /** Stderr behind stdout: in which order the pieces of both came is chance. */
  #shown(hostname: string): string {
    const { stdout = [], stderr = [] } = this.#pieces.get(hostname) ?? {}
    const [first, then] = [stdout, stderr].map((pieces) => comparedText(pieces.join('')))
    return [first, then].filter(Boolean).join(first?.endsWith('\n') ? '' : '\n')
  }
}
