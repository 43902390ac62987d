import { outputBound } from '../../../core/task/gates.ts'
import type { Store } from '../../seams/store.ts'

/** Tasks whose bound is remembered. */
const mostKnown = 4096

/** Bytes of output that tasks take of each host. */
export class TaskBounds {
  readonly #store: Pick<Store, 'get'>
  readonly #known = new Map<string, number>()
  readonly #reading = new Map<string, Promise<number>>()

  constructor(store: Pick<Store, 'get'>) {
    this.#store = store
  }

  known(taskId: string): number | undefined {
    return this.#known.get(taskId)
  }

  /** Those who ask meanwhile are answered together, in the order in which they have asked. */
  read(taskId: string): Promise<number> {
    const reading =
      this.#reading.get(taskId) ?? this.#read(taskId).finally(() => this.#reading.delete(taskId))
    this.#reading.set(taskId, reading)
    return reading
  }

  async #read(taskId: string): Promise<number> {
    const task = await this.#store.get('tasks', taskId)
    const bytes = outputBound(task?.maxOutputBytes ?? 0, task?.gates)
    this.#known.set(taskId, bytes)
    const [oldest] = this.#known.keys()
    if (this.#known.size > mostKnown && oldest !== undefined) this.#known.delete(oldest)
    return bytes
  }
}
