import { isFinal } from '../../../../core/tasks/task.ts'
import type { Execution } from '../../ports/executions.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Progress } from '../../ports/outputs.ts'
import type { TaskRecord } from '../../records/task.ts'
import { OpenOnHost } from './open-on-host.ts'
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
      const isTurn = status === 'PENDING' && dueAt !== null
      const hasRoom = isFinal(status) && this.#open.has(hostId)
      if (isTurn || hasRoom || (status === 'RUNNING' && cancelRequested)) hosts.add(hostId)
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
