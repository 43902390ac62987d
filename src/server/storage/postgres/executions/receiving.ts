import { faultPoint } from '#fault-point'
import { BoundedMap } from '../../../../core/bounded-map.ts'
import { RsmError } from '../../../../core/errors.ts'
import type { ScriptOutput } from '../../../../core/protocol/messages.ts'
import { outputBound, type Phase, phasesOf } from '../../../../core/tasks/gates.ts'
import { isFinal } from '../../../../core/tasks/task.ts'
import { AckBatcher } from '../../executions/ack-batcher.ts'
import { settled } from '../../executions/ends.ts'
import type { OutputDisk } from '../../executions/live-output.ts'
import { asNamed, asReached, asTruncated, type Decide } from '../../executions/transitions.ts'
import { gateOf } from '../../output-line.ts'
import type { Executions } from '../../ports/executions.ts'
import type { Store } from '../../ports/store.ts'
import { type ClaimedRow, outputOf, type Stored } from './rows.ts'
import type { Steps } from './steps.ts'

/** Acknowledgements, output, phases and ends, as agents report them; also output over SSH. */
export function createReceiving(
  steps: Steps,
): Pick<Executions, 'received' | 'append' | 'reached' | 'settle'> & { close: () => Promise<void> } {
  const { outputs, store, log } = steps.deps
  const bounds = new TaskBounds(store)
  const { claimed } = steps

  /** Rereads after a chunk was not stored. True if the execution has ended; otherwise output continues after the stored part. */
  function readAgain(own: ClaimedRow): Promise<boolean> {
    const { id } = own.stored.execution
    own.torn ??= steps.read([id]).then(
      ([stored]) => {
        if (!stored || isFinal(stored.execution.status)) {
          claimed.drop(id)
          return true
        }
        claimed.note(stored)
        if (claimed.get(id) === own) resume(own, stored)
        return false
      },
      () => {
        // It is read again over the next link.
        claimed.drop(id)
        return false
      },
    )
    return own.torn
  }

  /** Counts again from the stored output, without chunks in flight. */
  function resume({ isReceived, output }: ClaimedRow, stored: Stored): void {
    const next = claimed.take(stored)
    next.isReceived = isReceived
    // A base-protocol agent never resends.
    next.output.incomplete = output.incomplete
  }

  /** Marks output incomplete after a chunk that was not stored and is not resent. */
  function noteMissing({ stored }: ClaimedRow, sequence: number): void {
    const now = claimed.get(stored.execution.id)
    if (now && now.stored.progress.lastSequence < sequence) now.output.incomplete = true
  }

  async function write(own: ClaimedRow, output: ScriptOutput, json: Uint8Array | undefined) {
    const { stream, sequence, phase, data } = output
    const { taskId, hostId, id } = own.stored.execution
    faultPoint('server.output.before')
    const guard = { epoch: own.epoch, before: own.queued }
    own.queued = sequence
    const timestamp = steps.now()
    const entry = { hostId, stream, sequence, timestamp, phase: gateOf(phase), data, json }
    let isStored: boolean
    try {
      isStored = await outputs.appendGuarded({ taskId, entry, guard })
    } catch (error) {
      // It may have been stored anyway.
      await readAgain(own)
      throw error
    }
    faultPoint('server.output.after')
    // Output after the end is dropped.
    if (!isStored && !(await readAgain(own))) throw elsewhere(id)
  }

  const diskOf = (own: ClaimedRow, maxBytes: number, isOurs: boolean): OutputDisk => ({
    maxBytes,
    write: (output, json) =>
      write(own, output, json).catch((error: unknown) => {
        if (!isOurs) noteMissing(own, output.sequence)
        throw error
      }),
    isTruncated: () => own.stored.execution.truncated,
    async noteTruncated() {
      await steps.transition(asTruncated(own, own.stored.execution.id))
    },
  })

  /** Drops output of an execution that has ended; returns the last stored sequence. */
  async function dropped(id: string): Promise<number | null> {
    const [stored] = await steps.read([id])
    if (!stored) return null
    if (!isFinal(stored.execution.status)) throw elsewhere(id)
    return outputOf(stored).storedSequence
  }

  /** Writes by epoch; skips executions that ended or that another server took over. */
  const acks = new AckBatcher((ids) => {
    const byEpoch = new Map<number, string[]>()
    for (const id of ids) {
      const own = claimed.get(id)
      if (own) byEpoch.set(own.epoch, [...(byEpoch.get(own.epoch) ?? []), id])
    }
    return Promise.all([...byEpoch].map(([epoch, its]) => steps.transition(asNamed({ epoch }, its))))
  }, log)

  return {
    close: () => acks.close(),

    received(id) {
      const own = claimed.get(id)
      if (!own || own.isReceived) return
      own.isReceived = true
      acks.add(id)
    },

    async append(id, output, json, isOurs) {
      const own = claimed.get(id)
      if (!own) return dropped(id)
      const { taskId } = own.stored.execution
      const { maxBytes } = bounds.known(taskId) ?? (await bounds.read(taskId))
      return own.output.append(output, json, isOurs, diskOf(own, maxBytes, isOurs))
    },

    async reached(id, phase) {
      const own = claimed.get(id)
      if (!own) return
      const { taskId } = own.stored.execution
      const { phases } = bounds.known(taskId) ?? (await bounds.read(taskId))
      await steps.transition(asReached(own, id, phase, phases))
    },

    async settle(id, end) {
      const own = claimed.get(id)
      const decide: Decide = (current, output) =>
        // Not claimed here: its end must come over the link that has it.
        own === undefined && current.status === 'RUNNING'
          ? null
          : settled(end, output, current, steps.deps.clock.now())
      const changed = await steps.change('settled', [id], decide, own ? { epoch: own.epoch } : {})
      if (changed.length > 0) return changed
      const [now] = await steps.read([id])
      if (now && !isFinal(now.execution.status)) throw elsewhere(id)
      return []
    },
  }
}

/** Error for frames of a replaced link: the agent resends them over the newer one. */
const elsewhere = (id: string) =>
  new RsmError('unavailable', `another link has execution ${id} now, on this server or on another one`, {
    retryAfter: 1,
  })

/** Maximum number of cached tasks. */
const maxTasks = 4096

/** Maximum output per host in bytes, and the phases of the task. */
interface Bounds {
  readonly maxBytes: number
  readonly phases: readonly Phase[]
}

class TaskBounds {
  readonly #store: Pick<Store, 'get'>
  readonly #known = new BoundedMap<string, Bounds>(maxTasks)
  readonly #reading = new Map<string, Promise<Bounds>>()

  constructor(store: Pick<Store, 'get'>) {
    this.#store = store
  }

  known(taskId: string): Bounds | undefined {
    return this.#known.get(taskId)
  }

  /** Callers during a read share it, and continue in the order of their calls. */
  read(taskId: string): Promise<Bounds> {
    const reading =
      this.#reading.get(taskId) ?? this.#read(taskId).finally(() => this.#reading.delete(taskId))
    this.#reading.set(taskId, reading)
    return reading
  }

  async #read(taskId: string): Promise<Bounds> {
    const task = await this.#store.get('tasks', taskId)
    const maxBytes = outputBound(task?.maxOutputBytes ?? 0, task?.gates)
    const bounds = { maxBytes, phases: phasesOf(task?.gates) }
    this.#known.set(taskId, bounds)
    return bounds
  }
}
