import type { LogEntry } from '../../core/protocol/http/logs.ts'
import type { GatePhase } from '../../core/tasks/gates.ts'

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
