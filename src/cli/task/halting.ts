import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { Halted, timedOutExit } from '../command/failure.ts'
import { onInterruption, type Signals, type Verdict } from './interruption.ts'
import type { TaskDisplay } from './task-display.ts'

/** Milliseconds to wait for the state of a task that was left or cancelled; with a cancel 5 s in all (contract §9). */
const leaveWait = 3_000
const cancelWait = 4_000
const readWait = 1_000

export interface HaltOptions {
  readonly client: Client
  readonly outputs: TaskDisplay
  readonly signals: Signals
  /** Seconds for the whole task, which is then cancelled: exit 124 (contract §9). */
  readonly deadline?: number | undefined
  /** Called once following is aborted: the command should end `within` milliseconds. */
  readonly halted: (exit: number, within: number) => void
}

/** Stops following a task early, on a signal or at the deadline. */
export class Halting {
  readonly #options: HaltOptions
  readonly #halt = new AbortController()
  readonly #interruption: ReturnType<typeof onInterruption>
  readonly #deadline: NodeJS.Timeout | undefined
  #waiting: NodeJS.Timeout | undefined
  #taskId: string | undefined
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

  /** Reason for stopping; undefined while following. */
  get by(): Verdict | undefined {
    return this.#by
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
    this.#options.halted(exit, kind === 'leave' ? leaveWait : cancelWait + readWait)
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
