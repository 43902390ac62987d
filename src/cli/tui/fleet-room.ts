import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import { newIdempotencyKey } from '../../client/services/requests.ts'
import { watchEvents } from '../../client/watch.ts'
import { mendable, type RsmError } from '../../core/errors.ts'
import { FleetState, tasksShown } from './fleet-state.ts'
import { type House, messageOf, orderTime, type Room, shortMessage } from './room.ts'
import { FleetView } from './view/fleet-view.ts'
import { doctorLines } from './view/overlay.ts'

/** Milliseconds between reads of all hosts, because heartbeats send no events. */
const heardEvery = 30_000
/** Milliseconds to wait after the last step of a moving choice. */
const chosenFor = 100
const retryPause = 1_000

export class FleetRoom implements Room {
  readonly view: FleetView
  readonly done: Promise<void>
  readonly isTicking = true
  readonly runningTask = null
  readonly #client: Client
  /** Client for changes: its calls may outlive the room by `orderTime`. */
  readonly #orders: Client
  readonly #house: House
  readonly #state = new FleetState()
  readonly #closing = new AbortController()
  readonly #closed = new AbortController()
  #hostId: number | null = null
  #choosing: NodeJS.Timeout | undefined

  constructor(client: Client, house: House) {
    const { signal } = this.#closing
    this.#client = client.until(signal)
    this.#orders = client.until(this.#closed.signal)
    this.#house = house
    this.view = new FleetView(this.#state, client.api.url, {
      openTask: (taskId, hostId) => house.openTask(taskId, hostId),
      tasksOf: (hostId) => this.#choose(hostId),
      terminal: (hostId) => house.terminal(hostId, this.view.say),
      run: (command, hostIds) => void this.#run(command, hostIds),
      examine: (columns, hostId) => void this.#examine(columns, hostId),
    })
    const follow = Promise.all([this.#follow(signal), this.#hear(signal)])
    this.done = follow.then(
      () => undefined,
      (error: unknown) => (signal.aborted ? undefined : Promise.reject(error)),
    )
  }

  close(): void {
    this.#closing.abort()
    setTimeout(() => this.#closed.abort(), orderTime).unref()
    clearTimeout(this.#choosing)
  }

  async #run(content: string, hostIds: readonly number[]): Promise<void> {
    try {
      const body = { script: { content }, target: { hostIds: [...hostIds] }, async: true }
      const { taskId } = await this.#orders.tasks.create(body, newIdempotencyKey())
      // A user who has left the room is not brought back.
      if (!this.#closing.signal.aborted) this.#house.openTask(taskId)
    } catch (error) {
      this.view.say(shortMessage(error), true)
    }
    this.#house.changed()
  }

  async #examine(columns: number, hostId: number | null): Promise<void> {
    const { signal } = this.#closing
    this.view.say('examining...')
    try {
      this.view.show(doctorLines(await this.#house.examine(columns, hostId, signal), columns))
    } catch (error) {
      if (!signal.aborted) this.view.say(shortMessage(error), true)
    }
    this.#house.changed()
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const onCut = (error: RsmError) => {
      this.view.lost = `${error.message}; trying again`
      this.#house.changed()
    }
    const options = { types: ['host', 'task'] as const, signal, onCut, retryFor: Number.POSITIVE_INFINITY }
    let isToRead = true
    for await (const event of watchEvents(this.#client.api, options)) {
      this.view.lost = null
      if (event.type === 'reset' || isToRead) isToRead = !(await this.#readAll())
      else if (this.#state.apply(event)) this.#choose(this.#hostId)
      this.#house.changed()
    }
  }

  async #hear(signal: AbortSignal): Promise<void> {
    for (;;) {
      await delay(heardEvery, undefined, { signal })
      await this.#readHosts().catch((error: unknown) => {
        if (!mendable(error)) throw error
      })
      this.#house.changed()
    }
  }

  /** Returns false to retry: the stream is about to be cut, too. */
  async #readAll(): Promise<boolean> {
    try {
      await Promise.all([this.#readHosts(), this.#readTasks()])
      return true
    } catch (error) {
      if (mendable(error)) return false
      throw error
    }
  }

  #choose(hostId: number | null, after = chosenFor): void {
    this.#hostId = hostId
    clearTimeout(this.#choosing)
    this.#choosing = setTimeout(() => {
      this.#readTasks().then(
        () => this.#house.changed(),
        (error: unknown) => {
          if (this.#closing.signal.aborted) return
          // The stream reports the lost connection.
          if (mendable(error)) this.#choose(this.#hostId, retryPause)
          else this.view.say(messageOf(error), true)
        },
      )
    }, after)
  }

  async #readHosts(): Promise<void> {
    const { content } = await allPages((query) => this.#client.hosts.list(query), {})
    this.#state.readHosts(content)
  }

  async #readTasks(): Promise<void> {
    const hostId = this.#hostId
    const query = hostId === null ? { size: tasksShown } : { size: tasksShown, hostId }
    const { content } = await this.#client.tasks.list(query)
    if (hostId === this.#hostId) this.#state.readTasks(content, hostId)
  }
}
