import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../client/client.ts'
import { newIdempotencyKey } from '../../client/services/requests.ts'
import { watchTask } from '../../client/watch.ts'
import { mendable, type RsmError } from '../../core/errors.ts'
import { TaskState } from '../task/task-state.ts'
import { LogReader } from './log/reader.ts'
import { type House, messageOf, orderTime, type Room, shortMessage } from './room.ts'
import { TaskView } from './view/task-view.ts'

const retryPause = 1_000

/** A task, running or finished: reads its log in pages, and follows its hosts as `logs -f` does. */
export class TaskRoom implements Room {
  readonly view: TaskView
  readonly done: Promise<void>
  readonly #client: Client
  /** Client for changes: its calls may outlive the room by `orderTime`. */
  readonly #orders: Client
  readonly #house: House
  readonly #state: TaskState
  readonly #reader: LogReader
  /** Current faults of the stream, and of other reads. */
  readonly #lost: { stream: string | null; reads: string | null } = { stream: null, reads: null }
  readonly #closing = new AbortController()
  readonly #closed = new AbortController()

  constructor(client: Client, house: House, taskId: string, hostId: number | null) {
    this.#client = client.until(this.#closing.signal)
    this.#orders = client.until(this.#closed.signal)
    this.#house = house
    this.#state = new TaskState(taskId)
    this.#reader = new LogReader({
      page: async (query) => {
        const page = await this.#client.tasks.logs(taskId, query)
        this.#say('reads', null)
        return page
      },
      changed: () => house.changed(),
      failed: (error, isTriedAgain) => {
        if (isTriedAgain) this.#say('reads', error)
        else this.view.say(messageOf(error), true)
      },
    })
    this.view = new TaskView(this.#state, this.#reader, {
      cancel: () => void this.#cancel(),
      retry: () => void this.#retry(),
      terminal: (hostId) => house.terminal(hostId, this.view.say),
      back: () => house.openFleet(),
    })
    if (hostId !== null) this.view.choose(hostId)
    this.done = this.#follow()
  }

  get runningTask(): string | null {
    return this.#state.isRunning ? this.#state.taskId : null
  }

  get isTicking(): boolean {
    return this.#state.isRunning
  }

  close(): void {
    this.#closing.abort()
    this.#reader.close()
    setTimeout(() => this.#closed.abort(), orderTime).unref()
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closing
    try {
      while (!(await this.#couldRead())) await delay(retryPause, undefined, { signal })
      // The task may have ended between the reads of its log and of itself.
      if (!this.#state.isRunning) this.#reader.missed()
      this.#house.changed()
      if (this.#state.isRunning) await this.#watch(signal)
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    // No stream reports changes made while it was disconnected.
    let isToRead = true
    const onCut = (error: RsmError) => {
      isToRead = true
      this.#say('stream', error)
    }
    const options = { query: { tail: 0 }, signal, onCut, retryFor: Number.POSITIVE_INFINITY }
    for await (const event of watchTask(this.#client.api, this.#state.taskId, options)) {
      if (isToRead) {
        this.#reader.missed()
        // A read that fails because of a cut is repeated when the stream resumes.
        isToRead = !(await this.#couldRead())
      }
      this.#say('stream', null)
      if (event.type === 'output') this.#reader.heard(event.entry.id, event.entry.hostId, event.entry.stream)
      else if (event.type === 'host') this.#state.result(event.result)
      else if (event.type === 'task') this.#state.change(event.task)
      else this.#end(event.task)
    }
  }

  #end({ results = [], ...summary }: Partial<Parameters<TaskState['read']>[0]>): void {
    for (const result of results) this.#state.result(result)
    this.#state.change(summary)
  }

  /** Returns false if a retry may succeed. */
  async #couldRead(): Promise<boolean> {
    try {
      this.#state.read(await this.#client.tasks.get(this.#state.taskId))
      this.#say('reads', null)
      return true
    } catch (error) {
      if (!mendable(error)) throw error
      this.#say('reads', error)
      return false
    }
  }

  /** A response to a request made before a cut does not mean that the stream works. */
  #say(of: 'stream' | 'reads', error: unknown): void {
    this.#lost[of] = error === null ? null : `${messageOf(error)}; trying again`
    this.view.lost = this.#lost.stream ?? this.#lost.reads
    this.#house.changed()
  }

  async #cancel(): Promise<void> {
    try {
      const task = await this.#orders.tasks.cancel(this.#state.taskId)
      this.#state.read(task)
      if (task.status === 'RUNNING') this.view.sayOfRun('the task is being cancelled')
    } catch (error) {
      this.view.say(shortMessage(error), true)
    }
    this.#house.changed()
  }

  async #retry(): Promise<void> {
    const { taskId } = this.#state
    try {
      const { secretParams } = await this.#client.tasks.script(taskId)
      if (secretParams.length > 0)
        return this.view.say(`requires secret params: rsm tasks retry ${taskId}`, true)
      const started = await this.#orders.tasks.retry(taskId, { async: true }, newIdempotencyKey())
      // A user who has left the room is not brought back.
      if (!this.#closing.signal.aborted) this.#house.openTask(started.taskId)
    } catch (error) {
      this.view.say(shortMessage(error), true)
    } finally {
      this.#house.changed()
    }
  }
}
