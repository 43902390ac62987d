import type { LogEntry } from '../../core/protocol/http/logs.ts'
import type { GatePhase } from '../../core/tasks/gates.ts'

/** An unterminated line is cut here, so that a host that never ends its line takes no memory without bound. */
export const longestLine = 1024 * 1024

export class LineAssembler {
  #rest = ''

  /** The lines that this piece completes, without their ends; `\r\n` and a lone `\r` end a line too. */
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

  /**
   * The same as one text, a line feed behind each line but the last; undefined when no line is complete. Output is looked
   * through once, not line by line.
   */
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

  /** Gives away the first `count` characters of the unfinished line, by default all of it. */
  take(count = Number.POSITIVE_INFINITY): string {
    const taken = this.rest.slice(0, count)
    this.#rest = this.#rest.slice(Math.min(count, this.#rest.length))
    if (count === Number.POSITIVE_INFINITY) this.#rest = ''
    return taken
  }
}

/** `[verify]`, as it stands before what is no output of the script itself. */
export const phaseMark = (phase: GatePhase): string => `[${phase.toLowerCase()}]`

/** Says in a text that people read where what a host wrote is of another phase: a line of its own. */
export class PhaseHeads {
  readonly #last = new Map<string, { readonly phase: GatePhase | undefined; readonly isOpen: boolean }>()

  /** The data of an entry with the line before it where its phase begins; `key` names the text that it goes to. */
  marked(key: string, { phase, data }: Pick<LogEntry, 'phase' | 'data'>): string {
    const last = this.#last.get(key)
    this.#last.set(key, { phase, isOpen: !data.endsWith('\n') })
    if (phase === undefined || phase === last?.phase) return data
    return `${last?.isOpen ? '\n' : ''}${phaseMark(phase)}\n${data}`
  }
}
