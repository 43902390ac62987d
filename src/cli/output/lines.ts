import type { LogEntry } from '../../core/protocol/http/logs.ts'
import type { GatePhase } from '../../core/tasks/gates.ts'

/** Characters at which an unterminated line is split, to bound memory. */
export const longestLine = 1024 * 1024

export class LineAssembler {
  #rest = ''

  /** The lines that this piece completes, without line ends; `\r\n` and a lone `\r` also end a line. */
  push(data: string): string[] {
    const text = this.#rest + data
    // A `\r` at the end may be the first half of `\r\n`.
    const pending = text.endsWith('\r') ? '\r' : ''
    const lines = (pending === '' ? text : text.slice(0, -1)).split(/\r\n|\n|\r/)
    this.#rest = (lines.pop() ?? '') + pending
    while (this.#rest.length > longestLine) {
      lines.push(this.#rest.slice(0, longestLine))
      this.#rest = this.#rest.slice(longestLine)
    }
    return lines
  }

  /** The same as one text, scanned once instead of line by line; undefined if no line is complete. */
  pushText(data: string): string | undefined {
    const end = data.lastIndexOf('\n')
    const isPlain = end !== -1 && !data.includes('\r') && !this.#rest.endsWith('\r')
    const isLong = data.length - end > longestLine || this.#rest.length + end > longestLine
    if (isPlain && !isLong) {
      const text = this.#rest + data.slice(0, end)
      this.#rest = data.slice(end + 1)
      return text
    }
    const lines = this.push(data)
    return lines.length === 0 ? undefined : lines.join('\n')
  }

  get rest(): string {
    return this.#rest.endsWith('\r') ? this.#rest.slice(0, -1) : this.#rest
  }

  /** Takes the first `count` characters of the unfinished line, by default all. */
  take(count = Number.POSITIVE_INFINITY): string {
    const taken = this.rest.slice(0, count)
    this.#rest = this.#rest.slice(Math.min(count, this.#rest.length))
    if (count === Number.POSITIVE_INFINITY) this.#rest = ''
    return taken
  }
}

/** `[verify]`, the mark of output that is not the script's own. */
export const phaseMark = (phase: GatePhase): string => `[${phase.toLowerCase()}]`

/** Adds a line to text for people where output of another phase starts. */
export class PhaseHeads {
  readonly #last = new Map<string, { readonly phase: GatePhase | undefined; readonly isOpen: boolean }>()

  /** The data, after a marker line if a phase starts; `key` identifies the destination. */
  marked(key: string, { phase, data }: Pick<LogEntry, 'phase' | 'data'>): string {
    const last = this.#last.get(key)
    this.#last.set(key, { phase, isOpen: !data.endsWith('\n') })
    if (phase === undefined || phase === last?.phase) return data
    return `${last?.isOpen ? '\n' : ''}${phaseMark(phase)}\n${data}`
  }
}
