import { outputBound, type Phase, phasesOf } from '../../../../core/tasks/gates.ts'
import { emptyCounts, isFinal } from '../../../../core/tasks/task.ts'
import { LiveOutput, noOutput } from '../../executions/live-output.ts'
import type { Execution, OutputSoFar, RunningExecution } from '../../ports/executions.ts'
import type { Progress } from '../../ports/outputs.ts'
import type { TaskRecord } from '../../records/task.ts'

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
