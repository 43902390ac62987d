import { rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { faultPoint } from '#fault-point'
import type { ExecuteScript } from '../../core/protocol/messages.ts'
import { writeFileDurably } from '../../disk/durable.ts'
import type { Machine } from '../processes/machine.ts'
import { originOf } from '../processes/origin.ts'
import type { Execution } from './execution.ts'
import type { Journal } from './journal.ts'

const requestFile = 'request.json'

interface Waiting {
  readonly execution: Execution
  readonly request: ExecuteScript
}

/** The executions that wait their turn, in order; a later agent finds them on disk. */
export class ExecutionQueue {
  readonly #journal: Journal
  readonly #machine: Machine
  #waiting: Waiting[] = []

  constructor({ journal, machine }: { journal: Journal; machine: Machine }) {
    this.#journal = journal
    this.#machine = machine
  }

  /** Waits from now on; settles when that is durable, or needless. Rejects when the disk refuses one that still waits. */
  async add(execution: Execution, request: ExecuteScript): Promise<void> {
    const { taskId, directory } = execution
    // What follows on its script is taken from the copy: it has no turn without one.
    if (execution.isGated) return this.#addGated(execution, request)
    this.#waiting.push({ execution, request })
    try {
      faultPoint('agent.request.before')
      await keepRequest(directory, request)
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
    if (!this.#journal.records.get(taskId)?.received) dropRequest(directory)
  }

  async #addGated(execution: Execution, request: ExecuteScript): Promise<void> {
    faultPoint('agent.request.before')
    await keepRequest(execution.directory, request)
    faultPoint('agent.request.after')
    const { taskId, directory } = execution
    this.#journal.append({ e: 'gated', taskId, origin: originOf(directory, this.#machine) })
    await this.#journal.sync()
    execution.isDurable = true
    this.#waiting.push({ execution, request })
  }

  /** Takes up what an earlier agent kept; false where the disk lost it. */
  async restore(execution: Execution): Promise<boolean> {
    const request = await keptRequest(execution.directory)
    if (request) this.#waiting.push({ execution, request })
    return request !== null
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

/** Keeps the request of a queued execution. It holds secrets, so it goes as soon as the script starts. */
async function keepRequest(directory: string, request: ExecuteScript): Promise<void> {
  await writeFileDurably(join(directory, requestFile), JSON.stringify(request), 0o600)
}

export function dropRequest(directory: string): void {
  rmSync(join(directory, requestFile), { force: true })
}

/** The request that an earlier agent kept; null where the disk lost it. */
export async function keptRequest(directory: string): Promise<ExecuteScript | null> {
  const text = await readFile(join(directory, requestFile), 'utf8').catch(() => null)
  return text === null ? null : (JSON.parse(text) as ExecuteScript)
}

/** How many executions run at once, and whether another may begin. */
export class Slots {
  readonly #most: number
  #taken = 0
  #isDraining = false
  #whenIdle: (() => void) | undefined

  constructor(most: number) {
    this.#most = most
  }

  get isFree(): boolean {
    return !this.#isDraining && this.#taken < this.#most
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
