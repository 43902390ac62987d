import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Task, TaskCreate } from '../../../src/core/protocol/http/tasks.ts'
import type { TestServer } from '../servers/server.ts'
import { followThrough, type Heard } from './follower.ts'
import type { Random } from './random.ts'
import { type ChaosScript, chaosScript } from './scripts.ts'

/** A task of the load: its request and its progress so far. */
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

/** Retries until the server answers, because it is killed repeatedly. A repeated POST has the same idempotency key. */
export async function insist(server: TestServer, method: string, path: string, body?: unknown) {
  const key = randomUUID()
  for (;;) {
    const answer = await server
      .api(method, path, body, method === 'POST' ? { 'idempotency-key': key } : {})
      .catch(() => null)
    if (answer && answer.status !== 503) return answer
    await delay(100)
  }
}

/** Tasks that run while everything breaks. */
export class ChaosLoad {
  readonly tasks: ChaosTask[] = []
  readonly #server: TestServer
  readonly #random: Random
  readonly #hostIds: readonly number[]
  readonly #starts: string
  readonly #work: Promise<void>[] = []
  executions = 0
  retries = 0

  constructor(server: TestServer, random: Random, hostIds: readonly number[], starts: string) {
    this.#server = server
    this.#random = random
    this.#hostIds = hostIds
    this.#starts = starts
  }

  get running(): number {
    return this.tasks.filter(({ ended }) => ended === null).length
  }

  /** Number of reconnects of followers. */
  get resumed(): number {
    return this.tasks.reduce((sum, { heard }) => sum + heard.resumed, 0)
  }

  /** Begins one more task without waiting. All random choices are made here, so that a seed gives the same load. */
  begin(): void {
    const random = this.#random
    const hostIds = random.some(this.#hostIds, random.between(1, this.#hostIds.length))
    const script = chaosScript(random)
    const cancelAfter = random.between(500, 12_000)
    const isRetried = random.between(1, 3) === 1
    const options = { ...random.pick(shapes), timeout: script.timeout, params: { STARTS: this.#starts } }
    const task = this.#add({ script, hostIds, options })
    this.#work.push(this.#carryOut(task, cancelAfter, isRetried))
  }

  #add(asked: Pick<ChaosTask, 'script' | 'hostIds' | 'options'>): ChaosTask {
    const task = { ...asked, taskId: '', ended: null, heard: { entries: [], resumed: 0 } }
    this.tasks.push(task)
    this.executions += asked.hostIds.length
    return task
  }

  /** Settles when every task has ended and its whole log was received. */
  async ended(): Promise<void> {
    await Promise.all(this.#work)
  }

  async #carryOut(task: ChaosTask, cancelAfter: number, isRetried: boolean): Promise<void> {
    const { content } = task.script
    const body = { ...task.options, script: { content }, target: { hostIds: task.hostIds } }
    task.taskId = await this.#start('/api/tasks', body)
    if (task.script.isCancelled) this.#work.push(this.#cancel(task, cancelAfter))
    task.ended = await followThrough(this.#server, task.taskId, task.heard)
    if (isRetried && !task.script.isCancelled) await this.#retry(task)
  }

  async #start(path: string, body: unknown): Promise<string> {
    const answer = await insist(this.#server, 'POST', path, body)
    if (answer.status >= 300) throw new Error(`refused: ${JSON.stringify(answer.body)}`)
    return answer.body.data.taskId
  }

  /** Retries on the hosts that did not succeed, if any. */
  async #retry({ taskId, script, options, ended }: ChaosTask): Promise<void> {
    const left = ended?.results?.filter(({ status }) => status !== 'SUCCESS') ?? []
    if (left.length === 0) return
    const again = this.#add({ script, options, hostIds: left.map(({ hostId }) => hostId) })
    again.taskId = await this.#start(`/api/tasks/${taskId}/retry`, {})
    this.retries += 1
    again.ended = await followThrough(this.#server, again.taskId, again.heard)
  }

  async #cancel(task: ChaosTask, after: number): Promise<void> {
    await delay(after)
    const answer = await insist(this.#server, 'POST', `/api/tasks/${task.taskId}/cancel`)
    // The answer to the first try may have died with the server; the second one then finds it ended.
    if (answer.status !== 200 && answer.status !== 409)
      throw new Error(`cancel: ${JSON.stringify(answer.body)}`)
  }
}
