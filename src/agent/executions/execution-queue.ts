import { rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { faultPoint } from '#fault-point'
import type { CopyOrder, ExecuteScript, FetchOrder } from '../../core/protocol/messages.ts'
import type { Order, OrderKind } from '../../core/protocol/orders.ts'
import { writeFileDurably } from '../../disk/durable.ts'
import type { ThrottledErrors } from '../log.ts'
import { type Machine, originOf } from '../processes/machine.ts'
import type { Execution } from './execution.ts'
import type { Journal } from './journal.ts'

const orderFile = 'request.json'

interface Waiting {
  readonly execution: Execution
  readonly order: Order
}

/** Queued executions, in order; on disk for the next agent. */
export class ExecutionQueue {
  readonly #journal: Journal
  readonly #machine: Machine
  readonly #errors: ThrottledErrors
  #waiting: Waiting[] = []

  constructor({ journal, machine }: { journal: Journal; machine: Machine }, errors: ThrottledErrors) {
    this.#journal = journal
    this.#machine = machine
    this.#errors = errors
  }

  /** Queues the order. Resolves once durable or no longer needed. Rejects on a disk error while queued. */
  async add(execution: Execution, order: Order): Promise<void> {
    const { taskId, directory } = execution
    // A gated execution runs its later steps from the saved order, so save it before queueing.
    if (execution.isGated) return this.#addGated(execution, order)
    this.#waiting.push({ execution, order })
    try {
      faultPoint('agent.request.before')
      await saveOrder(directory, order)
      faultPoint('agent.request.after')
      if (execution.state === 'QUEUED') {
        this.#journal.append({ e: 'received', taskId, origin: originOf(directory, this.#machine) })
        await this.#journal.sync()
        execution.isDurable = true
        return
      }
    } catch (error) {
      if (execution.state === 'QUEUED') throw error
    }
    // It was started or cancelled during the write: no saved order is needed, and a failed write does not
    // matter. If the journal has it, the start deletes the file once it is durable.
    if (!this.#journal.records.get(taskId)?.received) dropOrder(execution, this.#errors)
  }

  async #addGated(execution: Execution, order: Order): Promise<void> {
    faultPoint('agent.request.before')
    await saveOrder(execution.directory, order)
    faultPoint('agent.request.after')
    const { taskId, directory } = execution
    this.#journal.append({ e: 'gated', taskId, origin: originOf(directory, this.#machine) })
    await this.#journal.sync()
    execution.isDurable = true
    this.#waiting.push({ execution, order })
  }

  /** Queues an execution of an earlier agent; false if its order is lost. */
  async restore(execution: Execution): Promise<boolean> {
    const order = await loadOrder(execution.directory)
    if (order) this.#waiting.push({ execution, order })
    return order !== null
  }

  next(): Waiting | undefined {
    return this.#waiting.shift()
  }

  /** Returns whether it was queued. */
  remove(execution: Execution): boolean {
    const left = this.#waiting.filter((waiting) => waiting.execution !== execution)
    const wasThere = left.length < this.#waiting.length
    this.#waiting = left
    return wasThere
  }
}

/** Saves the order of a queued execution. It holds secrets, so it is deleted when the execution starts. */
export async function saveOrder(directory: string, order: Order): Promise<void> {
  await writeFileDurably(join(directory, orderFile), JSON.stringify({ ...noScript, ...order }), 0o600)
}

/** Fields that older agents require in each order, because a failed upgrade restores such an agent. */
const noScript = { script: '', params: {}, scriptType: 'BASH' } as const

export function dropOrder({ taskId, directory }: Execution, errors: ThrottledErrors): void {
  errors.attempt('could not delete the saved order of an execution', taskId, () =>
    rmSync(join(directory, orderFile), { force: true }),
  )
}

/** An order on disk. Older agents saved no kind, and file orders with an empty script. */
type StoredOrder = ExecuteScript & { kind?: OrderKind; copy?: CopyOrder; fetch?: FetchOrder }

const kindOf = ({ kind, copy, fetch, upgrade }: StoredOrder): OrderKind =>
  kind ?? (copy ? 'COPY' : fetch ? 'FETCH' : upgrade ? 'UPGRADE' : 'SCRIPT')

/** The saved order; null if it is lost. */
export async function loadOrder(directory: string): Promise<Order | null> {
  const text = await readFile(join(directory, orderFile), 'utf8').catch(() => null)
  if (text === null) return null
  const stored = JSON.parse(text) as StoredOrder
  return { ...stored, kind: kindOf(stored) } as Order
}

export class Slots {
  readonly #max: number
  #taken = 0
  #isDraining = false
  #whenIdle: (() => void) | undefined

  constructor(max: number) {
    this.#max = max
  }

  get isFree(): boolean {
    return !this.#isDraining && this.#taken < this.#max
  }

  /** An execution that an earlier agent began takes a slot even if none is free. */
  take(): void {
    this.#taken += 1
  }

  release(): void {
    this.#taken -= 1
    if (this.#taken === 0) this.#whenIdle?.()
  }

  /** Refuses new executions. Resolves when no slot is taken. */
  drain(): Promise<void> {
    this.#isDraining = true
    if (this.#taken === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenIdle = resolve
    })
  }
}
