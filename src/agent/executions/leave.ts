import type { Clock } from '../clock.ts'
import type { Execution } from './execution.ts'

/** Milliseconds that a link must stand: by then an agent that lives elsewhere has taken it. */
const standsFor = 60_000

/** The end of an execution of which nothing more may start here. */
export const notContinued = {
  status: 'LOST',
  exitCode: 255,
  signal: null,
  error:
    'not continued: the host was restarted or the agent directory was copied, and another agent may have continued it',
} as const

interface LeaveOptions {
  readonly clock: Clock
  readonly given: (execution: Execution) => void
  readonly refused: (execution: Execution) => void
}

/**
 * Executions whose files another agent may have, too. Nothing of them starts before a server has answered the HELLO that
 * names them, and the link has stood for a minute without another agent that takes it (P48).
 */
export class Leave {
  readonly #options: LeaveOptions
  readonly #timers = new Map<Execution, () => void>()

  constructor(options: LeaveOptions) {
    this.#options = options
  }

  answered(execution: Execution, isRefused: boolean): void {
    if (execution.leave !== 'AWAITED') return
    const { clock, given, refused } = this.#options
    this.#timers.get(execution)?.()
    this.#timers.delete(execution)
    if (isRefused) {
      execution.leave = 'REFUSED'
      return refused(execution)
    }
    const settle = () => {
      this.#timers.delete(execution)
      if (execution.leave !== 'AWAITED' || execution.state === 'EXITED') return
      execution.leave = 'GIVEN'
      given(execution)
    }
    this.#timers.set(execution, clock.after(standsFor, settle))
  }

  /** The link is gone: the next one begins again. */
  unlinked(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }
}
