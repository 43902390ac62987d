import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Task, TaskCreate } from '../../../src/core/protocol/http/tasks.ts'
import type { ServerProcess } from '../servers/server-process.ts'
import { followThrough, type Heard } from './follower.ts'
import type { Random } from './random.ts'
import { type ChaosScript, chaosScript } from './scripts.ts'

/** A task of the load: what was asked for, and what is known of it so far. */
export interface ChaosTask {
  readonly script: ChaosScript
  readonly hostIds: readonly number[]
  readonly options: Omit<TaskCreate, 'script' | 'target'>
  taskId: string
  /** Null while it runs. */
  ended: Task | null
  heard: Heard
}

type Shape = Pick<TaskCreate, 'strategy' | 'batchSize' | 'pauseSeconds' | 'maxFailures' | 'concurrency'>

const shapes: readonly Shape[] = [
  { strategy: 'PARALLEL' },
  { strategy: 'PARALLEL' },
  { strategy: 'PARALLEL', concurrency: 2 },
  { strategy: 'SEQUENTIAL' },
  { strategy: 'SEQUENTIAL', maxFailures: '100%' },
  { strategy: 'ROLLING', batchSize: 2, pauseSeconds: 1, maxFailures: '100%' },
  { strategy: 'ROLLING', batchSize: [1, '50%'] },
]

/** Asks until the server answers: it is killed again and again. A repeated POST has the same idempotency key. */
async function insist(server: ServerProcess, method: string, path: string, body?: unknown) {
  const key = randomUUID()
  for (;;) {
    const answer = await server
      .api(method, path, body, method === 'POST' ? { 'idempotency-key': key } : {})
      .catch(() => null)
    if (answer && answer.status !== 503) return answer
    await delay(100)
  }
}

/** Work that goes on while everything breaks. */
export class ChaosLoad {
  readonly tasks: ChaosTask[] = []
  readonly #server: ServerProcess
  readonly #random: Random
  readonly #hostIds: readonly number[]
  readonly #starts: string
  readonly #work: Promise<void>[] = []
  executions = 0

  constructor(server: ServerProcess, random: Random, hostIds: readonly number[], starts: string) {
    this.#server = server
    this.#random = random
    this.#hostIds = hostIds
    this.#starts = starts
  }

  get running(): number {
    return this.tasks.filter(({ ended }) => ended === null).length
  }

  /** Begins one more task; answers at once. All that is random is drawn here, so that a seed gives the same load. */
  begin(): void {
    const random = this.#random
    const hostIds = random.some(this.#hostIds, random.between(1, this.#hostIds.length))
    const script = chaosScript(random)
    const cancelAfter = random.between(500, 12_000)
    const task: ChaosTask = {
      script,
      hostIds,
      options: { ...random.pick(shapes), timeout: script.timeout, params: { STARTS: this.#starts } },
      taskId: '',
      ended: null,
      heard: { entries: [], resumed: 0 },
    }
    this.tasks.push(task)
    this.executions += hostIds.length
    this.#work.push(this.#carryOut(task, cancelAfter))
  }

  /** Settles when every task has ended and its whole log was heard. */
  async ended(): Promise<void> {
    await Promise.all(this.#work)
  }

  async #carryOut(task: ChaosTask, cancelAfter: number): Promise<void> {
    const { content } = task.script
    const body = { ...task.options, script: { content }, target: { hostIds: task.hostIds } }
    const answer = await insist(this.#server, 'POST', '/api/tasks', body)
    if (answer.status >= 300) throw new Error(`refused: ${JSON.stringify(answer.body)}`)
    task.taskId = answer.body.data.taskId
    if (task.script.isCancelled) this.#work.push(this.#cancel(task, cancelAfter))
    task.ended = await followThrough(this.#server, task.taskId, task.heard)
  }

  async #cancel(task: ChaosTask, after: number): Promise<void> {
    await delay(after)
    const answer = await insist(this.#server, 'POST', `/api/tasks/${task.taskId}/cancel`)
    // The answer to the first try may have died with the server: then the second finds it ended.
    if (answer.status !== 200 && answer.status !== 409)
      throw new Error(`cancel: ${JSON.stringify(answer.body)}`)
  }
}
