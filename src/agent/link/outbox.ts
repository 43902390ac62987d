import { BoundedMap } from '../../core/bounded-map.ts'
import { longestSentence } from '../../core/protocol/bounds.ts'
import {
  type AgentHello,
  type ScriptAck,
  type ScriptComplete,
  type ScriptOutput,
  type ScriptPhase,
  type ScriptReceived,
} from '../../core/protocol/messages.ts'
import type { Execution } from '../executions/execution.ts'
import type { Runner } from '../executions/runner.ts'
import type { ThrottledErrors } from '../log.ts'

/** Unacknowledged bytes allowed for one execution (design "Flow control"). */
const window = 1024 * 1024
/** Unacknowledged chunks allowed for one execution, because tiny ones cost more than their bytes. */
const windowChunks = 1024
/** Milliseconds to wait for more output of an execution before sending it. */
const coalesce = 10
/** Milliseconds before a retry if output could not be cut or read (ENOSPC). */
const againAfter = 1_000
const rememberedFrames = 4096
/** ERROR codes that mean the task is not this agent's to report. */
const notOurs: ReadonlySet<number> = new Set([403, 404, 410])

export interface Sending {
  sendReceived(received: ScriptReceived): void
  sendPhase(reached: ScriptPhase): void
  /** Returns the id of the message, like `sendOutput`. */
  sendComplete(complete: ScriptComplete): string
  /** Reads `bytes` before it returns, so the buffer can be reused. */
  sendOutput(about: Omit<ScriptOutput, 'data'>, bytes: Buffer): string
  /** False while the socket is full; `Outbox.flow` is called when it has room again. */
  hasRoom(): boolean
}

interface Progress {
  /** Listed in HELLO: the server has yet to confirm what it stored. */
  awaitsAck: boolean
  /** The server has confirmed it after HELLO, however late. */
  isAnswered: boolean
  acked: number
  next: number
  inFlight: number[]
  inFlightBytes: number
  completeSent: boolean
  sentAt: number
  stopTimer: NodeJS.Timeout | null
}

/** Sends output and results to the server, across links, until they are acknowledged (contract §4). */
export class Outbox {
  readonly #runner: Runner
  readonly #errors: ThrottledErrors
  readonly #progress = new Map<string, Progress>()
  readonly #sentFor = new BoundedMap<string, string>(rememberedFrames)
  /** Executions that may have something to send, round-robin by chunk. */
  readonly #ready = new Set<Execution>()
  #sending: Sending | null = null

  constructor(runner: Runner, errors: ThrottledErrors) {
    this.#runner = runner
    this.#errors = errors
    runner.subscribe({
      changed: (execution) => this.#changed(execution),
      received: ({ taskId }, sequence) => this.#sending?.sendReceived({ taskId, journal: { sequence } }),
      reached: ({ taskId, step: { phase } }) => this.#sending?.sendPhase({ taskId, phase }),
      answer: (complete) => this.#complete(complete),
    })
  }

  get isIdle(): boolean {
    return this.#runner.executions.size === 0
  }

  /** A new link: lists all unacknowledged executions; their output waits for the server's answer. */
  begin(sending: Sending): AgentHello['tasks'] {
    this.end()
    this.#sending = sending
    const named = [...this.#runner.executions.values()].filter((execution) => execution.isDurable)
    return named.map((execution) => {
      execution.isForgotten = false
      const { taskId, state, isGated, step } = execution
      Object.assign(this.#progressOf(taskId), { awaitsAck: true, isAnswered: false })
      const lastSequence = this.#lastSequence(execution)
      return { taskId, state, lastSequence, ...(isGated && { phase: step.phase }) }
    })
  }

  end(): void {
    this.#sending = null
    this.#runner.permissions.unlinked()
    for (const progress of this.#progress.values()) if (progress.stopTimer) clearTimeout(progress.stopTimer)
    this.#progress.clear()
    this.#sentFor.clear()
    this.#ready.clear()
  }

  acknowledged(ack: ScriptAck): void {
    const execution = this.#runner.executions.get(ack.taskId)
    if (!execution) return
    if (ack.complete) return this.#release(ack.taskId)
    const progress = this.#progressOf(ack.taskId)
    const { isAnswered } = progress
    progress.awaitsAck = false
    progress.isAnswered = true
    const stored = Math.min(ack.sequence ?? -1, this.#lastSequence(execution))
    for (let at = progress.acked; at < stored; at += 1) {
      progress.inFlightBytes -= progress.inFlight.shift() ?? 0
      progress.acked += 1
    }
    progress.next = Math.max(progress.next, progress.acked + 1)
    this.#pump(execution)
    if (!isAnswered || ack.noStart) this.#runner.permissions.answered(execution, ack.noStart === true)
  }

  refused(refId: string | null, code: number): void {
    const taskId = refId === null ? undefined : this.#sentFor.get(refId)
    const execution = taskId === undefined ? undefined : this.#runner.executions.get(taskId)
    if (!execution || !notOurs.has(code)) return
    execution.isForgotten = true
    this.#release(execution.taskId)
  }

  /** Sends while the socket has room, so that a flood delays others' output by one chunk at most. */
  flow(): void {
    // Executions added again during the loop are visited again.
    for (const execution of this.#ready) {
      if (!this.#sending?.hasRoom()) return
      this.#ready.delete(execution)
      const sending = this.#sending
      this.#attempt(execution, () => {
        if (this.#sendNext(sending, execution)) this.#ready.add(execution)
      })
    }
  }

  /** The server did not answer HELLO for these: send them, so that it reports unknown ones. */
  probe(): void {
    for (const [taskId, progress] of this.#progress) {
      const execution = this.#runner.executions.get(taskId)
      if (!progress.awaitsAck || !execution) continue
      progress.awaitsAck = false
      this.#pump(execution)
    }
  }

  #release(taskId: string): void {
    const progress = this.#progress.get(taskId)
    if (progress?.stopTimer) clearTimeout(progress.stopTimer)
    this.#progress.delete(taskId)
    const execution = this.#runner.executions.get(taskId)
    if (execution) this.#ready.delete(execution)
    this.#runner.release(taskId)
  }

  #progressOf(taskId: string): Progress {
    let progress = this.#progress.get(taskId)
    if (!progress) {
      progress = {
        awaitsAck: false,
        isAnswered: true,
        acked: -1,
        next: 0,
        inFlight: [],
        inFlightBytes: 0,
        completeSent: false,
        sentAt: Number.NEGATIVE_INFINITY,
        stopTimer: null,
      }
      this.#progress.set(taskId, progress)
    }
    return progress
  }

  #changed(execution: Execution): void {
    if (execution.isForgotten && execution.state === 'EXITED') return this.#release(execution.taskId)
    if (execution.state === 'EXITED') return this.#pump(execution)
    if (!execution.hasBegun) return
    const progress = this.#progressOf(execution.taskId)
    if (progress.stopTimer) return
    this.#pump(execution)
    // A flood triggers this at every write: one check in 10 ms is enough.
    this.#pumpLater(execution, progress, coalesce)
  }

  #pumpLater(execution: Execution, progress: Progress, wait: number): void {
    progress.stopTimer ??= setTimeout(() => {
      progress.stopTimer = null
      this.#pump(execution)
    }, wait)
  }

  #pump(execution: Execution): void {
    if (!execution.hasBegun && !execution.complete) return
    if (execution.run && !this.#attempt(execution, () => execution.output().bound())) return
    if (!this.#sending) return
    this.#ready.add(execution)
    this.flow()
  }

  /** Retries later: a disk error of one execution must not affect the link or other executions. */
  #attempt(execution: Execution, act: () => void): boolean {
    if (this.#errors.attempt('could not cut or read output; retrying', execution.taskId, act)) return true
    this.#pumpLater(execution, this.#progressOf(execution.taskId), againAfter)
    return false
  }

  /** -1 if unknown for now: then the server gets its chunks again, and drops them. */
  #lastSequence(execution: Execution): number {
    try {
      return execution.lastSequence
    } catch (error) {
      this.#errors.report('could not cut or read output; retrying', execution.taskId, error)
      return -1
    }
  }

  /** Sends one chunk, or the result after the last; false if nothing can follow now. */
  #sendNext(sending: Sending, execution: Execution): boolean {
    const progress = this.#progressOf(execution.taskId)
    if (progress.awaitsAck || progress.completeSent || execution.isForgotten) return false
    const last = execution.complete?.lastSequence ?? Number.POSITIVE_INFINITY
    if (progress.next <= last) {
      if (progress.inFlightBytes >= window || progress.inFlight.length >= windowChunks) return false
      // An ended execution is cut completely: chunks missing from the index were lost in a power failure.
      if (progress.next < execution.output().count || (!execution.complete && this.#cut(execution, progress)))
        return this.#sendChunk(sending, execution, progress)
    }
    if (!execution.complete) return false
    progress.completeSent = true
    const sent = Math.min(
      execution.complete.lastSequence ?? -1,
      Math.max(progress.next, progress.acked + 1) - 1,
    )
    this.#complete({ ...execution.complete, lastSequence: sent })
    return false
  }

  /** Sends the first chunk after a pause and full ones at once; others wait up to 10 ms for more output. */
  #cut(execution: Execution, progress: Progress): boolean {
    const wait = progress.sentAt + coalesce - performance.now()
    if (execution.output().cut(wait <= 0)) return true
    if (wait > 0) this.#pumpLater(execution, progress, wait)
    return false
  }

  #sendChunk(sending: Sending, execution: Execution, progress: Progress): true {
    const { taskId } = execution
    const sequence = progress.next
    const { stream, content, bytes, phase } = execution.output().read(sequence)
    const gate = phase === 'SCRIPT' ? {} : { phase }
    const id = sending.sendOutput({ taskId, stream, sequence, ...gate }, content)
    progress.next += 1
    progress.inFlight.push(bytes)
    progress.inFlightBytes += bytes
    progress.sentAt = performance.now()
    this.#sentFor.set(id, taskId)
    return true
  }

  #complete(complete: ScriptComplete): void {
    if (!this.#sending) return
    // Truncate long quotes such as paths, because a refused frame would never end the execution.
    const error = complete.error?.slice(0, longestSentence) ?? null
    this.#sentFor.set(this.#sending.sendComplete({ ...complete, error }), complete.taskId)
  }
}
