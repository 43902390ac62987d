import { constants } from 'node:os'
import { longestTimer } from '../../core/protocol/bounds.ts'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Clock } from '../clock.ts'
import {
  type Containment,
  type LeftProcesses,
  leftReport,
  nothingLeft,
  stillWriting,
} from '../processes/containment.ts'
import { type Exit, readExit } from '../processes/exit-file.ts'
import type { Tree } from '../processes/processes.ts'
import { levelOf } from '../processes/tree.ts'
import { type Writer, writersOf } from '../processes/writers.ts'
import type { EndReason } from './journaled.ts'

export type Outcome = Pick<ScriptComplete, 'exitCode' | 'duration'> &
  Required<Pick<ScriptComplete, 'status' | 'signal' | 'error' | 'containment'>> &
  Pick<ScriptComplete, 'survivors'>

interface RunOptions {
  readonly tree: Tree
  readonly containment: Containment
  readonly directory: string
  readonly clock: Clock
  /** Resolves when the wrapper has ended. */
  readonly exited: Promise<void>
  /** Milliseconds it already ran: more than 0 after a restart of the agent. */
  readonly elapsed: number
  /** Seconds since boot at the start. */
  readonly startUptime: number
  /** Seconds; 0 = no timeout. */
  readonly timeout: number
  /** Called before the first signal. */
  readonly ending: (reason: EndReason) => void
}

/** The signal that ended a script; null for `exit 128+N`. */
function signalOf({ code, isDeath }: Pick<Exit, 'code' | 'isDeath'>): string | null {
  if (isDeath !== true) return null
  return Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0] ?? null
}

/** Milliseconds that other processes, such as a `>(filter)`, have to close the output after the script's end. */
export const drainTimeout = 2_000
const firstPause = 5
const longestPause = 100

interface End {
  readonly tree: Tree
  readonly reason: EndReason | undefined
  /** Milliseconds. */
  readonly duration: number
  readonly ended: LeftProcesses
}

/** Result of a script (contract §4), including processes that could not be ended. */
export function outcome(exit: Exit | null, { tree, reason, duration, ended }: End): Outcome {
  const { fields, message } = leftReport(ended)
  const error = message ?? stillWriting(ended)
  const common = { duration, containment: levelOf(tree), ...fields }
  if (reason === 'TIMEOUT') return { ...common, exitCode: -1, status: 'TIMEOUT', signal: null, error }
  if (reason === 'CANCELLED') {
    // SIGKILL also kills the wrapper, so there is no exit file.
    const end = exit ?? ({ code: 137, isDeath: true } as const)
    return { ...common, exitCode: end.code, status: 'CANCELLED', signal: signalOf(end), error }
  }
  if (exit === null) {
    const killed = "the script's processes were killed from outside rsm"
    const text = error === null ? killed : `${killed}; ${error}`
    return { ...common, exitCode: 137, status: 'FAILED', signal: 'SIGKILL', error: text }
  }
  if (exit.isNever) {
    const never = 'it never began: the agent ended first'
    return { ...common, exitCode: exit.code, status: 'FAILED', signal: null, error: never }
  }
  const status = exit.code === 0 ? 'SUCCESS' : 'FAILED'
  return { ...common, exitCode: exit.code, status, signal: signalOf(exit), error }
}

interface DrainOptions {
  readonly clock: Clock
  /** Milliseconds since the script started. */
  readonly age: number
  /** Milliseconds. */
  readonly patience: number
  readonly isStopped: () => boolean
}

/** Waits until no process holds the script's output open, at most `patience`; returns those that still do. */
export async function drainOutput(
  directory: string,
  tree: Tree,
  options: DrainOptions,
): Promise<LeftProcesses> {
  const { clock, age, patience, isStopped } = options
  const began = clock.monotonic()
  let writers: readonly Writer[] = []
  for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
    const elapsed = clock.monotonic() - began
    try {
      writers = writersOf(directory, tree, { age: age + elapsed, known: writers })
    } catch {
      // The exit code is reported even if /proc cannot be read (EMFILE).
      return { remnants: [], isAllKnown: false }
    }
    if (writers.length === 0 || elapsed >= patience || isStopped())
      return { remnants: [], writers, isAllKnown: true }
    await new Promise<void>((resolve) => clock.after(pause, resolve))
  }
}

/** A running script, from its start or its recovery by a new agent to its end. */
export class Run {
  /** Resolves once it has ended, and its tree too if that had to be ended. */
  readonly ended: Promise<Outcome>
  /** Processes that still hold the output, once `ended` has settled. */
  writers: readonly Writer[] = []
  readonly #options: RunOptions
  readonly #began: number
  #isStopped = false
  #reason: EndReason | undefined
  #killing: Promise<LeftProcesses> | undefined
  /** Resolves if a process survives all signals: stop waiting for the wrapper. */
  readonly #gaveUp: Promise<void>
  #giveUp: () => void = () => {}
  #stopTimer: () => void = () => {}
  readonly #stopNoting: () => void

  constructor(options: RunOptions) {
    this.#options = options
    this.#began = options.clock.monotonic() - options.elapsed
    this.#gaveUp = new Promise((resolve) => {
      this.#giveUp = resolve
    })
    this.#stopNoting = options.containment.note(options.tree)
    if (options.timeout > 0) this.#armTimeout()
    this.ended = Promise.race([options.exited, this.#gaveUp]).then(() => this.#settle())
  }

  /** Ends the whole tree, unless the script already ended. */
  end(reason: EndReason): void {
    if (this.#reason !== undefined || readExit(this.#options.directory) !== null) return
    this.#reason = reason
    this.#options.ending(reason)
    this.#killing = this.#endTree()
  }

  /** Continues an end that an earlier agent began: the reason stands, however much of the tree remains. */
  resumeEnding(reason: EndReason): void {
    this.#reason = reason
    this.#killing = this.#endTree()
  }

  detach(): void {
    this.#isStopped = true
    this.#stopTimer()
    this.#stopNoting()
  }

  #armTimeout(): void {
    const { clock, timeout } = this.#options
    const left = timeout * 1000 - (clock.monotonic() - this.#began)
    // After the agent was suspended, the timer is due, but the script may have ended in time: `end` checks.
    if (left <= 0) this.end('TIMEOUT')
    else this.#stopTimer = clock.after(Math.min(left, longestTimer), () => this.#armTimeout())
  }

  async #settle(): Promise<Outcome> {
    this.#stopTimer()
    const exit = readExit(this.#options.directory)
    // Without its wrapper, the result of the rest could not be learned.
    if (exit === null && !this.#killing) this.#killing = this.#endTree()
    const ended = await (this.#killing ?? (exit?.isNever ? nothingLeft : this.#drain()))
    this.#stopNoting()
    const { tree } = this.#options
    const end = { tree, reason: this.#reason, duration: this.#duration(exit), ended }
    return outcome(exit ?? readExit(this.#options.directory), end)
  }

  async #drain(): Promise<LeftProcesses> {
    const { directory, tree, clock } = this.#options
    const age = clock.monotonic() - this.#began
    const left = await drainOutput(directory, tree, {
      clock,
      age,
      patience: drainTimeout,
      isStopped: () => this.#isStopped,
    })
    this.writers = left.writers ?? []
    return left
  }

  async #endTree(): Promise<LeftProcesses> {
    const { containment, tree } = this.#options
    try {
      const ended = await containment.end(tree)
      if (ended.remnants.length > 0) this.#giveUp()
      return ended
    } catch (error) {
      // The outcome is unknown (EMFILE): stop waiting for the wrapper.
      this.#giveUp()
      this.#stopNoting()
      throw error
    }
  }

  /** A suspended agent notices the end late, so the wrapper's clock counts. */
  #duration(exit: Exit | null): number {
    const elapsed = this.#options.clock.monotonic() - this.#began
    const reported = exit ? (exit.uptime - this.#options.startUptime) * 1000 + 10 : elapsed
    return Math.max(0, Math.round(Math.min(elapsed, reported)))
  }
}
