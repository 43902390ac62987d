import type { Execution } from '../../ports/executions.ts'

const byTurn = (one: Execution, other: Execution) =>
  (one.dueAt ?? '') < (other.dueAt ?? '') || (one.dueAt === other.dueAt && one.id < other.id) ? -1 : 1

const isDue = ({ status, dueAt }: Execution) => status === 'PENDING' && dueAt !== null

/**
 * The executions of one host that are RUNNING, or due and PENDING, as they are on disk. Thousands may wait for a host that
 * runs a few at a time: what is next is found without a look at the others.
 */
export class OpenOnHost {
  readonly #running = new Map<string, Execution>()
  /** In the order of their turns; `dueAt` never changes once it is set. */
  readonly #waiting: Execution[] = []
  /** How many changes of an execution are on their way to the disk. */
  readonly #staged = new Map<string, number>()

  get isEmpty(): boolean {
    return this.#running.size + this.#waiting.length + this.#staged.size === 0
  }

  /** What is due, in the order of its turns. */
  get waiting(): readonly Execution[] {
    return this.#waiting
  }

  /** First what is RUNNING, then the others in the order of their turns. */
  all(): Execution[] {
    return [...this.#running.values(), ...this.#waiting]
  }

  put(execution: Execution): void {
    const { id, status } = execution
    const place = this.#placeOf(execution)
    const isKnown = this.#waiting[place]?.id === id
    if (isDue(execution)) this.#waiting.splice(place, isKnown ? 1 : 0, execution)
    else if (isKnown) this.#waiting.splice(place, 1)
    if (status === 'RUNNING') this.#running.set(id, execution)
    else this.#running.delete(id)
  }

  stage(id: string): void {
    this.#staged.set(id, (this.#staged.get(id) ?? 0) + 1)
  }

  unstage(id: string): void {
    const left = (this.#staged.get(id) ?? 0) - 1
    if (left > 0) this.#staged.set(id, left)
    else this.#staged.delete(id)
  }

  /**
   * What to run next, as far as `capacity` goes. `read` answers records with what is on its way to the disk. To be called
   * in a transaction: no other one changes anything meanwhile.
   */
  async next(
    capacity: number,
    read: (ids: readonly string[]) => Promise<readonly (Execution | undefined)[]>,
    mayRun: (execution: Execution) => boolean,
  ): Promise<Execution[]> {
    const ids = new Set([...this.#running.keys(), ...this.#staged.keys()])
    const newest = (await read([...ids])).filter((one) => one !== undefined)
    const room = capacity - newest.filter(({ status }) => status === 'RUNNING').length
    const next = newest.filter((one) => isDue(one) && mayRun(one))
    let left = room
    for (const one of this.#waiting) {
      if (left <= 0) break
      // All others are on disk as they are.
      if (ids.has(one.id) || !mayRun(one)) continue
      next.push(one)
      left--
    }
    return next.sort(byTurn).slice(0, Math.max(0, room))
  }

  /** Where it is in `#waiting`, or would be. */
  #placeOf(execution: Execution): number {
    let low = 0
    let high = this.#waiting.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = this.#waiting[middle]
      if (other && other.id !== execution.id && byTurn(other, execution) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
