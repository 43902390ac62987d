import { outputBound, type Phase, phasesOf } from '../../../../core/tasks/gates.ts'
import { emptyCounts, isFinal } from '../../../../core/tasks/task.ts'
import { LiveOutput, noOutput } from '../../executions/live-output.ts'
import { byDueAt } from '../../executions/transitions.ts'
import type { Execution, OutputSoFar, RunningExecution } from '../../ports/executions.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Progress } from '../../ports/outputs.ts'
import type { TaskRecord } from '../../records/task.ts'

/** All running tasks in memory, as they are on disk, with their open executions by host. */
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

  /** Throws if the task is not running. */
  of({ taskId }: Execution): RunningTask {
    const task = this.#tasks.get(taskId)
    if (!task) throw new Error(`task ${taskId} does not run`)
    return task
  }

  execution(id: string): Execution | undefined {
    const slash = id.lastIndexOf('/')
    return this.#tasks.get(id.slice(0, slash))?.ofHost(Number(id.slice(slash + 1)))
  }

  openOn(hostId: number): OpenOnHost | undefined {
    return this.#open.get(hostId)
  }

  open(): Execution[] {
    return [...this.#open.values()].flatMap((ofHost) => ofHost.all())
  }

  /**
   * Marks executions as in flight to the disk; returns a function to call once they are written or refused.
   */
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

  /** Applies durable records and publishes hints; returns them, named if confirmed. */
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

  /** Notifies the server with the link of each host that has executions to take or to cancel. */
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

/** Volatile state of an execution beyond its record; rebuilt after a restart. */
interface Live {
  readonly output: LiveOutput
  /** The agent has confirmed that it has it. */
  isReceived: boolean
  /** Claim epoch of the link that it was marked for, or that took it over since; null after a restart. */
  epoch: number | null
}

/** Running task: its executions in plan order, as they are on disk. */
export class RunningTask {
  readonly id: string
  /** Limit for each host. */
  readonly maxOutputBytes: number
  readonly phases: readonly Phase[]
  readonly counts = emptyCounts()
  /** Resolves when a step that ends it has succeeded or failed. */
  ending: Promise<unknown> = Promise.resolve()
  readonly #executions: Execution[]
  readonly #positions = new Map<number, number>()
  readonly #live = new Map<number, Live>()
  /** Revision of the newest change; cursors are revisions. */
  #revision = 0
  /** Changes in order, including at least the newest of each execution. */
  #changed: { readonly revision: number; readonly position: number }[] = []

  constructor(task: TaskRecord, executions: readonly Execution[], stored: ReadonlyMap<number, Progress>) {
    this.id = task.id
    this.maxOutputBytes = outputBound(task.maxOutputBytes, task.gates)
    this.phases = phasesOf(task.gates)
    this.#executions = executions.toSorted((a, b) => a.position - b.position)
    for (const [position, { hostId, status }] of this.#executions.entries()) {
      this.#positions.set(hostId, position)
      this.counts[status]++
      const progress = stored.get(hostId)
      if (progress && !isFinal(status)) this.live(position, progress)
    }
  }

  get isOpen(): boolean {
    return this.counts.PENDING + this.counts.RUNNING > 0
  }

  get executions(): readonly Execution[] {
    return this.#executions
  }

  ofHost(hostId: number): Execution | undefined {
    return this.#executions[this.#positions.get(hostId) ?? -1]
  }

  live(position: number, progress?: Progress): Live {
    let live = this.#live.get(position)
    if (!live) {
      const output = new LiveOutput(progress, this.#executions[position]?.truncated === true)
      live = { output, isReceived: false, epoch: null }
      this.#live.set(position, live)
    }
    return live
  }

  output({ position }: Execution): OutputSoFar {
    return this.#live.get(position)?.output ?? noOutput
  }

  withOutput(execution: Execution): RunningExecution {
    return { execution, output: this.output(execution) }
  }

  /** Applies a durable record; returns it, named if the agent has confirmed it. */
  apply(next: Execution): Execution {
    const before = this.#executions[next.position]
    if (before) this.counts[before.status]--
    this.counts[next.status]++
    const known = this.#live.get(next.position)?.isReceived ? { ...next, named: true } : next
    this.#executions[next.position] = known
    this.#noteChange(next.position)
    return known
  }

  /** Notes that the agent has it, before that is on disk. */
  receive(execution: Execution): void {
    this.live(execution.position).isReceived = true
    this.#executions[execution.position] = { ...execution, named: true }
  }

  changes(after: number): { executions: Execution[]; cursor: number } {
    const from = this.#changed.findLastIndex(({ revision }) => revision <= after) + 1
    const positions = new Set(this.#changed.slice(from).map(({ position }) => position))
    const executions = [...positions].flatMap((position) => this.#executions[position] ?? [])
    return { executions, cursor: this.#revision }
  }

  /** Keeps at most twice as many changes as there are executions. */
  #noteChange(position: number): void {
    this.#revision++
    this.#changed.push({ revision: this.#revision, position })
    if (this.#changed.length <= 2 * this.#executions.length) return
    const newest = new Map(this.#changed.map((change) => [change.position, change.revision]))
    this.#changed = this.#changed.filter((change) => newest.get(change.position) === change.revision)
  }
}

/**
 * Executions of one host that are RUNNING, or due and PENDING, as they are on disk. Thousands may wait for a
 * host that runs a few at a time, so the next ones are found without scanning the others.
 */
class OpenOnHost {
  readonly #running = new Map<string, Execution>()
  /** Sorted by `dueAt`, which never changes once it is set. */
  readonly #waiting: Execution[] = []
  /** Number of changes in flight to the disk, by execution. */
  readonly #staged = new Map<string, number>()

  get isEmpty(): boolean {
    return this.#running.size + this.#waiting.length + this.#staged.size === 0
  }

  /** Due executions, longest due first. */
  get waiting(): readonly Execution[] {
    return this.#waiting
  }

  /** RUNNING executions, then the due ones, longest due first. */
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
   * Executions to run next, up to `capacity`. `read` returns records with changes in flight to the disk. Call
   * it in a transaction, so that no other one interferes.
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
      // All others have no change in flight.
      if (ids.has(one.id) || !mayRun(one)) continue
      next.push(one)
      left--
    }
    return next.sort(byDueAt).slice(0, Math.max(0, room))
  }

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
