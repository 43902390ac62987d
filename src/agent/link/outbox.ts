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

/** Bytes of one execution that may be unacknowledged (design "Flow control"). */
const window = 1024 * 1024
/** Chunks of one execution that may be: tiny ones cost more than their bytes. */
const windowChunks = 1024
/** Milliseconds within which further output of an execution waits for more of it. */
const coalesce = 10
/** Milliseconds after which output is tried again that could not be cut or read (ENOSPC). */
const againAfter = 1_000
const rememberedFrames = 4096
/** Codes of an ERROR by which the server says that the task is not this agent's to report. */
const notOurs: ReadonlySet<number> = new Set([403, 404, 410])

/** The way to the server while it stands. */
export interface Sending {
  sendReceived(received: ScriptReceived): void
  sendPhase(reached: ScriptPhase): void
  /** Both give the id of the message. */
  sendComplete(complete: ScriptComplete): string
  /** `bytes` are read before it returns, and may be used again. */
  sendOutput(about: Omit<ScriptOutput, 'data'>, bytes: Buffer): string
  /** False while too much waits in the socket; `Outbox.flow` is called when there is room again. */
  hasRoom(): boolean
}

interface Progress {
  /** Named in HELLO: the server has still to say up to where it has stored. */
  awaitsAck: boolean
  /** The server has answered HELLO for it, however late. */
  isAnswered: boolean
  acked: number
  next: number
  inFlight: number[]
  inFlightBytes: number
  completeSent: boolean
  sentAt: number
  stopTimer: NodeJS.Timeout | null
}

/** Brings output and ends to the server over one link after the other, until they are acknowledged (contract §4). */
export class Outbox {
  readonly #runner: Runner
  readonly #errors: ThrottledErrors
  readonly #progress = new Map<string, Progress>()
  readonly #sentFor = new BoundedMap<string, string>(rememberedFrames)
  /** What may have something to send, in the order in which it sends: one chunk, then the next one's. */
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

  /** Whether anything waits for the server. */
  get isIdle(): boolean {
    return this.#runner.executions.size === 0
  }

  /** A link stands: names all that is not acknowledged; their output waits for the server's word. */
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

  /** An ERROR of the server about a message of ours. */
  refused(refId: string | null, code: number): void {
    const taskId = refId === null ? undefined : this.#sentFor.get(refId)
    const execution = taskId === undefined ? undefined : this.#runner.executions.get(taskId)
    if (!execution || !notOurs.has(code)) return
    execution.isForgotten = true
    this.#release(execution.taskId)
  }

  /** Sends while there is room in the socket, so that a flood holds up no other's output by more than a chunk. */
  flow(): void {
    // What comes back to the end of the set is visited again.
    for (const execution of this.#ready) {
      if (!this.#sending?.hasRoom()) return
      this.#ready.delete(execution)
      const sending = this.#sending
      this.#attempt(execution, () => {
        if (this.#sendNext(sending, execution)) this.#ready.add(execution)
      })
    }
  }

  /** HELLO was not answered for these: the server may not know them, and says so when it sees one. */
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
    // A flood is told of at every write of the script: one check in 10 ms is enough.
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

  /** The trouble of one execution with its disk is not that of the link, nor of the others: it is tried again later. */
  #attempt(execution: Execution, act: () => void): boolean {
    if (this.#errors.attempt('output waits', execution.taskId, act)) return true
    this.#pumpLater(execution, this.#progressOf(execution.taskId), againAfter)
    return false
  }

  /** -1 where it can't be told now: then the server is sent again what it has, and drops it. */
  #lastSequence(execution: Execution): number {
    try {
      return execution.lastSequence
    } catch (error) {
      this.#errors.report('output waits', execution.taskId, error)
      return -1
    }
  }

  /** One chunk, or the end when there is no more; false when nothing may follow for now. */
  #sendNext(sending: Sending, execution: Execution): boolean {
    const progress = this.#progressOf(execution.taskId)
    if (progress.awaitsAck || progress.completeSent || execution.isForgotten) return false
    const last = execution.complete?.lastSequence ?? Number.POSITIVE_INFINITY
    if (progress.next <= last) {
      if (progress.inFlightBytes >= window || progress.inFlight.length >= windowChunks) return false
      // Once the end is known all is cut: what the index lacks then was lost with the power.
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

  /** The first chunk after a pause leaves at once; a full one too; any other waits for what may follow within 10 ms. */
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
    // It may quote what came from elsewhere, as a path: a frame that the server refuses for it would end nothing.
    const error = complete.error?.slice(0, longestSentence) ?? null
    this.#sentFor.set(this.#sending.sendComplete({ ...complete, error }), complete.taskId)
  }
}
