import { isFinal } from '../../../../core/tasks/task.ts'
import type { Execution } from '../../ports/executions.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Progress } from '../../ports/outputs.ts'
import type { TaskRecord } from '../../records/task.ts'
import { RunningTask } from './running-task.ts'

/** All running tasks in memory, as they are on disk, and which of their executions are open on which host, for its link. */
export class RunningTasks {
  readonly #hints: Hints
  readonly #tasks = new Map<string, RunningTask>()
  readonly #open = new Map<number, OpenOnHost>()

  constructor(hints: Hints) {
    this.#hints = hints
  }

  add(task: TaskRecord, executions: readonly Execution[], stored: ReadonlyMap<number, Progress>): void {
    this.#tasks.set(task.id, new RunningTask(task, executions, stored))
    for (const execution of executions) this.#index(execution)
  }

  delete(taskId: string): void {
    this.#tasks.delete(taskId)
  }

  get(taskId: string): RunningTask | undefined {
    return this.#tasks.get(taskId)
  }

  ids(): string[] {
    return [...this.#tasks.keys()]
  }

  /** The task of an execution; throws where that does not run. */
  of({ taskId }: Execution): RunningTask {
    const task = this.#tasks.get(taskId)
    if (!task) throw new Error(`task ${taskId} does not run`)
    return task
  }

  /** By its id, `taskId/hostId`. */
  execution(id: string): Execution | undefined {
    const slash = id.lastIndexOf('/')
    return this.#tasks.get(id.slice(0, slash))?.ofHost(Number(id.slice(slash + 1)))
  }

  /** Undefined: there is nothing to run on this host. */
  openOn(hostId: number): OpenOnHost | undefined {
    return this.#open.get(hostId)
  }

  open(): Execution[] {
    return [...this.#open.values()].flatMap((ofHost) => ofHost.all())
  }

  /** These are on their way to the disk; answers what to call when they are there, or never will be. */
  staged(changed: readonly Execution[]): () => void {
    const forLinks = changed.filter(({ overSsh }) => !overSsh)
    for (const { id, hostId } of forLinks) this.#at(hostId).stage(id)
    return () => {
      for (const { id, hostId } of forLinks) {
        this.#at(hostId).unstage(id)
        this.#prune(hostId)
      }
    }
  }

  /** Takes what has become durable, and hints at it; answers it as it is known. */
  apply(changed: readonly Execution[], hintsQueues = true): Execution[] {
    const applied = changed.map((next) => this.of(next).apply(next))
    for (const execution of applied) {
      this.#index(execution)
      const { taskId, hostId } = execution
      this.#hints.publish('task', { id: taskId, hostId, change: 'updated' })
    }
    for (const taskId of new Set(applied.map(({ taskId }) => taskId)))
      this.#hints.publish('task', { id: taskId, hostId: null, change: 'updated' })
    if (hintsQueues) this.hintQueues(applied)
    return applied
  }

  /** Tells the server with the link of each host where there is something to take or to cancel now. */
  hintQueues(changed: readonly Execution[]): void {
    const hosts = new Set<number>()
    for (const { status, dueAt, cancelRequested, hostId } of changed) {
      const isReady = status === 'PENDING' && dueAt !== null
      const hasRoom = isFinal(status) && this.#open.has(hostId)
      if (isReady || hasRoom || (status === 'RUNNING' && cancelRequested)) hosts.add(hostId)
    }
    for (const id of hosts) this.#hints.publish('lane', { id })
  }

  #index(execution: Execution): void {
    if (execution.overSsh) return
    this.#at(execution.hostId).put(execution)
    this.#prune(execution.hostId)
  }

  #at(hostId: number): OpenOnHost {
    const ofHost = this.#open.get(hostId) ?? new OpenOnHost()
    this.#open.set(hostId, ofHost)
    return ofHost
  }

  #prune(hostId: number): void {
    if (this.#open.get(hostId)?.isEmpty) this.#open.delete(hostId)
  }
}

/**
 * The executions of one host that are RUNNING, or due and PENDING, as they are on disk. Thousands may wait for a host that
 * runs a few at a time: what is next is found without a look at the others.
 */
class OpenOnHost {
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
    return next.sort(byDueAt).slice(0, Math.max(0, room))
  }

  /** Where it is in `#waiting`, or would be. */
  #placeOf(execution: Execution): number {
    let low = 0
    let high = this.#waiting.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = this.#waiting[middle]
      if (other && other.id !== execution.id && byDueAt(other, execution) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

const isDue = ({ status, dueAt }: Execution) => status === 'PENDING' && dueAt !== null

const byDueAt = (one: Execution, other: Execution) =>
  (one.dueAt ?? '') < (other.dueAt ?? '') || (one.dueAt === other.dueAt && one.id < other.id) ? -1 : 1
