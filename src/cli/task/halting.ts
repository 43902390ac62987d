import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { Halted, timedOutExit } from '../command/failure.ts'
import { ask as askOnTerminal } from '../input/prompt.ts'
import { exitOfTask } from '../output/outcome.ts'
import type { TaskDisplay } from './task-display.ts'

/** Milliseconds to wait for the state of a task that was left or cancelled; with a cancel 5 s in all (contract §9). */
const leaveWait = 3_000
const cancelWait = 4_000
const readWait = 1_000
/** Milliseconds for writing the last output after following ends. */
const writeTime = 1_000

/** Decision about a followed task: `leave` keeps it running. `exit` is the exit code. */
export interface Verdict {
  readonly kind: 'cancel' | 'leave'
  readonly exit: number
}

/** Effect of SIGINT and SIGTERM on a followed task; `ask` asks on Ctrl-C if interactive. */
export type Signals = 'ask' | 'cancel' | 'leave'

export interface HaltOptions {
  readonly client: Client
  readonly outputs: TaskDisplay
  readonly signals: Signals
  /** Seconds for the whole task, which is then cancelled: exit 124 (contract §9). */
  readonly deadline?: number | undefined
  /** The command that continues where this one stopped; `last` is the last output shown. */
  readonly resume: (taskId: string, last: number | undefined) => string
  /** Called once a stop is decided: the command should end `within` milliseconds (default: `endInTime`). */
  readonly halted?: (exit: number, within: number) => void
}

export interface Followed {
  readonly task: Task
  readonly exit: number
  /** Why following stopped early, if the task does not say so. */
  readonly reason?: RsmError
  readonly isHalted: boolean
}

/** Stops following a task early, on a signal or at the deadline. */
export class Halting {
  readonly #options: HaltOptions
  readonly #halt = new AbortController()
  readonly #interruption: ReturnType<typeof onInterruption>
  readonly #deadline: NodeJS.Timeout | undefined
  #waiting: NodeJS.Timeout | undefined
  #taskId: string | undefined
  /** Reason for stopping; undefined while following. */
  #by: Verdict | undefined
  #isOver = false

  constructor(options: HaltOptions) {
    const { signals, deadline, outputs } = options
    this.#options = options
    this.#interruption = onInterruption({
      signals,
      taskId: () => this.#taskId,
      decided: (verdict) => this.#stop(verdict),
      asking: (isAsking) => (isAsking ? outputs.ask() : outputs.answered()),
    })
    if (deadline !== undefined)
      this.#deadline = setTimeout(() => this.#stop({ kind: 'cancel', exit: timedOutExit }), deadline * 1000)
  }

  /** Aborts when the command stops waiting. */
  get signal(): AbortSignal {
    return this.#halt.signal
  }

  /** Starts the task; rejects with `Halted` if the command stops waiting for the response. */
  async begin<T extends { taskId: string }>(start: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this
    const givenUp = new Promise<never>((_, reject) => {
      const halted = () => {
        const message = `${this.#why} before the server answered; the task may have started`
        reject(new Halted(this.#exit, message, { hint: 'rsm tasks list --status RUNNING' }))
      }
      signal.addEventListener('abort', halted, { once: true })
    })
    const started = await Promise.race([start(signal), givenUp])
    this.#taskId = started.taskId
    // A signal may have arrived during the start.
    if (this.#by?.kind === 'cancel') void this.#cancel(started.taskId)
    return started
  }

  /** Reads the task with its results; after a stop, makes one last attempt with a timeout. */
  async read(taskId: string): Promise<Task> {
    const wait = this.#by?.kind === 'leave' ? leaveWait : readWait
    const signal = this.signal.aborted ? AbortSignal.timeout(wait) : this.signal
    try {
      return await this.#options.client.tasks.get(taskId, {}, signal)
    } catch (cause) {
      if (this.#by === undefined) throw cause
      const hint = `rsm tasks show ${taskId}`
      throw new Halted(this.#exit, `${this.#why}; the state of task ${taskId} is unknown`, { hint, cause })
    }
  }

  /** Exit code of a followed task, and why following stopped early; `last` is the last output shown. */
  outcomeOf(task: Task, last: number | undefined): Followed {
    const { taskId, status } = task
    const { outputs, deadline, resume } = this.#options
    const by = this.#by
    const own = { task, exit: exitOfTask(task), isHalted: false }
    if (by === undefined) return own
    const left = { task, exit: by.exit, isHalted: true }
    if (by.exit === timedOutExit) {
      // A task that ended before the cancel reached it has its own result.
      if (status !== 'RUNNING' && status !== 'CANCELLED') return own
      const fate = status === 'RUNNING' ? 'is being cancelled' : 'was cancelled'
      const passed = `the deadline of ${deadline} s has passed: task ${taskId} ${fate}`
      return { ...left, reason: new Halted(timedOutExit, passed) }
    }
    if (status === 'RUNNING')
      outputs.notice(
        by.kind === 'leave'
          ? `task ${taskId} is still running: ${resume(taskId, last)}`
          : `task ${taskId} is being cancelled: rsm tasks wait ${taskId}`,
      )
    return left
  }

  close(): void {
    clearTimeout(this.#waiting)
    clearTimeout(this.#deadline)
    this.#interruption.stop()
    // An unanswered request would keep the process alive.
    this.#isOver = true
    this.#halt.abort()
  }

  get #exit(): number {
    return this.#by?.exit ?? 130
  }

  get #why(): string {
    return this.#exit === timedOutExit ? 'the deadline has passed' : 'interrupted'
  }

  #stop(verdict: Verdict): void {
    if (this.#by !== undefined) return
    this.#by = verdict
    const { kind, exit } = verdict
    const { halted = endInTime } = this.#options
    halted(exit, kind === 'leave' ? leaveWait : cancelWait + readWait)
    this.#interruption.settled()
    if (kind === 'leave') return this.#halt.abort()
    if (this.#taskId !== undefined) void this.#cancel(this.#taskId)
    this.#waiting = setTimeout(() => this.#halt.abort(), cancelWait)
  }

  async #cancel(taskId: string): Promise<void> {
    const { client, outputs } = this.#options
    try {
      await client.tasks.cancel(taskId, this.signal)
    } catch (error) {
      // A task that ended meanwhile needs no cancel.
      if (this.#isOver || (error instanceof RsmError && error.code === 'conflict')) return
      if (this.signal.aborted) outputs.notice(`the server has not confirmed the cancel of task ${taskId}`)
      else outputs.notice(`could not cancel task ${taskId}: ${(error as Error).message}`)
      this.#halt.abort()
    }
  }
}

/** A reader of stdout that stops reading would keep the process forever. */
function endInTime(exit: number, within: number): void {
  setTimeout(() => process.exit(process.exitCode ?? exit), within + writeTime).unref()
}

/** Valid answers; any other repeats the question, so that a paste or slip does not end a task. */
const answers = new Map<string, Verdict['kind'] | 'watch'>([
  ['c', 'cancel'],
  ['cancel', 'cancel'],
  ['l', 'leave'],
  ['leave', 'leave'],
  ['', 'watch'],
])

interface InterruptionOptions {
  readonly signals: Signals
  readonly taskId: () => string | undefined
  readonly decided: (verdict: Verdict) => void
  readonly asking: (isAsking: boolean) => void
  readonly ask?: typeof askOnTerminal
}

/**
 * Handles SIGINT and SIGTERM (contract §9). With `ask`, the first Ctrl-C asks whether to cancel the task, and
 * a second one cancels. SIGHUP cancels nothing.
 */
export function onInterruption(options: InterruptionOptions): {
  settled(): void
  stop(): void
} {
  const { ask = askOnTerminal } = options
  const asking = new AbortController()
  let asked = false
  const kind = options.signals === 'leave' ? 'leave' : 'cancel'
  const end = (exit: number) => {
    asking.abort()
    options.decided({ kind, exit })
  }
  const question = async () => {
    const taskId = options.taskId()
    options.asking(true)
    process.stderr.write(`\nrsm: task ${taskId ?? 'not yet started'}\n`)
    let answer = ''
    do {
      answer = await ask('[c]ancel, [l]eave it running, or Enter to keep watching: ', {
        instead: 'interrupt again to cancel',
        signal: asking.signal,
      }).catch((error: unknown) => {
        if (!(error instanceof RsmError)) throw error
        // Without a terminal, a signal cancels; end of input changes nothing.
        return error.code === 'usage' ? 'cancel' : ''
      })
      answer = answer.trim().toLowerCase()
    } while (!asking.signal.aborted && !answers.has(answer))
    // Move the cursor off the abandoned question.
    if (asking.signal.aborted) process.stderr.write('\n')
    options.asking(false)
    if (asking.signal.aborted) return
    const verdict = answers.get(answer)
    if (verdict === 'cancel') end(130)
    else if (verdict === 'leave') options.decided({ kind: 'leave', exit: 130 })
    else asked = false
  }
  const onInt = () => {
    if (options.signals !== 'ask' || asked) return end(130)
    asked = true
    void question()
  }
  const onTerm = () => end(143)
  // A second signal ends a process that only watches.
  const listen = kind === 'leave' ? 'once' : 'on'
  process[listen]('SIGINT', onInt)
  process[listen]('SIGTERM', onTerm)
  return {
    settled: () => asking.abort(),
    stop() {
      asking.abort()
      process.off('SIGINT', onInt)
      process.off('SIGTERM', onTerm)
    },
  }
}
