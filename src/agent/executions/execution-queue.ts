import { rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { faultPoint } from '#fault-point'
import type { CopyOrder, ExecuteScript, FetchOrder } from '../../core/protocol/messages.ts'
import type { Order, OrderKind } from '../../core/protocol/orders.ts'
import { writeFileDurably } from '../../disk/durable.ts'
import type { ThrottledErrors } from '../log.ts'
import type { Machine } from '../processes/machine.ts'
import { originOf } from '../processes/origin.ts'
import type { Execution } from './execution.ts'
import type { Journal } from './journal.ts'

const orderFile = 'request.json'

interface Waiting {
  readonly execution: Execution
  readonly order: Order
}

/** The executions that wait their turn, in order; a later agent finds them on disk. */
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

  /** Waits from now on; settles when that is durable, or needless. Rejects when the disk refuses one that still waits. */
  async add(execution: Execution, order: Order): Promise<void> {
    const { taskId, directory } = execution
    // What follows on its script is taken from the copy: it has no turn without one.
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
    // Its turn or a cancel came while the disk was at work: it needs no copy any more, and a refused one is no failure.
    // Where the journal names it the start drops the copy, once it is durable itself.
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

  /** Takes up what an earlier agent kept; false where the disk lost it. */
  async restore(execution: Execution): Promise<boolean> {
    const order = await loadOrder(execution.directory)
    if (order) this.#waiting.push({ execution, order })
    return order !== null
  }

  next(): Waiting | undefined {
    return this.#waiting.shift()
  }

  /** Whether it was there. */
  remove(execution: Execution): boolean {
    const left = this.#waiting.filter((waiting) => waiting.execution !== execution)
    const wasThere = left.length < this.#waiting.length
    this.#waiting = left
    return wasThere
  }
}

/** Keeps the order of a queued execution. It holds secrets, so it goes as soon as the execution starts. */
export async function saveOrder(directory: string, order: Order): Promise<void> {
  await writeFileDurably(join(directory, orderFile), JSON.stringify({ ...noScript, ...order }), 0o600)
}

/** Fields that an older agent needs in each order, because an upgrade that fails puts that agent back. */
const noScript = { script: '', params: {}, scriptType: 'BASH' } as const

/** Removes the kept order of an execution that has begun. */
export function dropOrder({ taskId, directory }: Execution, errors: ThrottledErrors): void {
  errors.attempt('the kept order of an execution stays', taskId, () =>
    rmSync(join(directory, orderFile), { force: true }),
  )
}

/** An order on the disk. Older agents kept no kind, and file orders with an empty script. */
type StoredOrder = ExecuteScript & { kind?: OrderKind; copy?: CopyOrder; fetch?: FetchOrder }

const kindOf = ({ kind, copy, fetch, upgrade }: StoredOrder): OrderKind =>
  kind ?? (copy ? 'COPY' : fetch ? 'FETCH' : upgrade ? 'UPGRADE' : 'SCRIPT')

/** The order that an earlier agent kept; null where the disk lost it. */
export async function loadOrder(directory: string): Promise<Order | null> {
  const text = await readFile(join(directory, orderFile), 'utf8').catch(() => null)
  if (text === null) return null
  const stored = JSON.parse(text) as StoredOrder
  return { ...stored, kind: kindOf(stored) } as Order
}

/** How many executions run at once, and whether another may begin. */
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

  /** One that an earlier agent has begun takes its slot even where none is free. */
  take(): void {
    this.#taken += 1
  }

  release(): void {
    this.#taken -= 1
    if (this.#taken === 0) this.#whenIdle?.()
  }

  /** None is free from now on. Settles when none is taken. */
  drain(): Promise<void> {
    this.#isDraining = true
    if (this.#taken === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenIdle = resolve
    })
  }
}
