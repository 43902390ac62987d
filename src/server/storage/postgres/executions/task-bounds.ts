import { BoundedMap } from '../../../../core/bounded-map.ts'
import { outputBound, type Phase, phasesOf } from '../../../../core/tasks/gates.ts'
import type { Store } from '../../ports/store.ts'

/** Tasks whose bounds are remembered. */
const mostKnown = 4096

/** Bytes of output that a task takes of each host, and the phases that it has there. */
interface Bounds {
  readonly maxBytes: number
  readonly phases: readonly Phase[]
}

/** What tasks take of each host. */
export class TaskBounds {
  readonly #store: Pick<Store, 'get'>
  readonly #known = new BoundedMap<string, Bounds>(mostKnown)
  readonly #reading = new Map<string, Promise<Bounds>>()

  constructor(store: Pick<Store, 'get'>) {
    this.#store = store
  }

  known(taskId: string): Bounds | undefined {
    return this.#known.get(taskId)
  }

  /** Those who ask meanwhile are answered together, in the order in which they have asked. */
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
