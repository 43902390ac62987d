import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import { FleetRoom } from './fleet-room.ts'
import { type House, type Room, shortMessage } from './room.ts'
import type { Key, Mouse, Screen, ScreenListener } from './screen/screen.ts'
import { TaskRoom } from './task-room.ts'

/** Milliseconds between frames, so that keys are handled under any load. */
const frameEvery = 40
const tickEvery = 1_000
const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 } as const

export interface TuiOptions {
  readonly client: Client
  readonly taskId: string | null
  /** Findings of the doctor about the fleet, in lines of at most `columns`. */
  readonly examine: House['examine']
  readonly openScreen: (listener: ScreenListener) => Screen
  /**
   * Runs a terminal session on this host, on the terminal that the screen released; returns a message about
   * its end. `signal` aborts only the wait for its start; a running session handles signals itself.
   */
  readonly runTerminal: (hostId: number, signal: AbortSignal) => Promise<string | null>
}

const atOnce = new Set(['?', 'escape'])
const mostEarly = 32

interface Ended {
  readonly exit: number
  readonly runningTask: string | null
}

/** Runs `rsm tui`: one room at a time on one screen. */
export class Tui implements House, ScreenListener {
  readonly #options: TuiOptions
  readonly #screen: Screen
  #room: Room
  #frame: NodeJS.Timeout | undefined
  #drawnAt = 0
  #isInTerminal = false
  #isClosed = false
  #exit: number | null = null
  readonly #early: Key[] = []
  readonly #departing = new AbortController()
  /** Deferred until the session releases the terminal. */
  #ending: (() => void) | null = null
  #end: (exit: number) => void = () => undefined
  #fail: (error: unknown) => void = () => undefined

  constructor(options: TuiOptions) {
    this.#options = options
    this.#room = this.#open(options.taskId)
    this.#screen = options.openScreen(this)
  }

  /** Resolves when the user leaves; rejects on a fatal error. Restores the terminal in both cases. */
  async run(): Promise<Ended> {
    const handlers = Object.entries(signals).map(([name, exit]) => [name, () => this.#depart(exit)] as const)
    for (const [name, handler] of handlers) process.on(name, handler)
    const tick = setInterval(() => {
      if (this.#room.isTicking) this.changed()
    }, tickEvery)
    try {
      const ended = new Promise<number>((resolve, reject) => {
        this.#end = resolve
        this.#fail = reject
      })
      this.#watch(this.#room)
      this.#screen.enter()
      const exit = await ended
      return { exit, runningTask: this.#room.runningTask }
    } finally {
      this.#isClosed = true
      clearInterval(tick)
      clearTimeout(this.#frame)
      this.#room.close()
      this.#screen.close()
      for (const [name, handler] of handlers) process.off(name, handler)
    }
  }

  changed(): void {
    if (this.#frame !== undefined || this.#isClosed) return
    const wait = Math.max(0, this.#drawnAt + frameEvery - performance.now())
    this.#frame = setTimeout(() => {
      this.#frame = undefined
      if (!this.#room.view.isCopying) this.#draw()
    }, wait)
  }

  openTask(taskId: string, hostId: number | null = null): void {
    this.#enter(this.#open(taskId, hostId))
  }

  openFleet(): void {
    this.#enter(this.#open(null))
  }

  examine(columns: number, hostId: number | null, signal: AbortSignal): Promise<string> {
    return this.#options.examine(columns, hostId, signal)
  }

  terminal(hostId: number, say: (text: string, isBad?: boolean) => void): void {
    if (this.#isInTerminal) return
    this.#isInTerminal = true
    this.#screen.leave()
    this.#inTerminal(hostId, say).catch((error: unknown) => this.#fail(error))
  }

  key(key: Key): void {
    // Keys read together with the key that opened the session.
    if (this.#isInTerminal) return
    const { view } = this.#room
    if (key.name === 'C-z') this.#screen.suspend()
    else if (key.name === 'C-l') this.#screen.redraw()
    else if ((key.name === 'q' && !view.isTyping) || key.name === 'C-c') this.#end(0)
    else if (this.#isEarly(key)) this.#early.push(key)
    else {
      view.key(key)
      this.#heard()
    }
  }

  /** Keys pressed before the first data are queued. */
  #isEarly({ name }: Key): boolean {
    const { view } = this.#room
    return !view.isReady && !view.isTyping && !atOnce.has(name) && this.#early.length < mostEarly
  }

  #makeUp(): void {
    if (!this.#room.view.isReady) return
    for (const key of this.#early.splice(0)) {
      this.key(key)
      // Draw a frame, because the next key acts on its result.
      this.#room.view.frame(this.#screen.size, Date.now())
    }
  }

  mouse(mouse: Mouse): void {
    if (this.#isInTerminal) return
    this.#room.view.mouse(mouse)
    this.#heard()
  }

  resized(): void {
    this.#draw()
  }

  gone(): void {
    this.#depart(signals.SIGHUP)
  }

  #open(taskId: string | null, hostId: number | null = null): Room {
    const { client } = this.#options
    return taskId === null ? new FleetRoom(client, this) : new TaskRoom(client, this, taskId, hostId)
  }

  #enter(room: Room): void {
    this.#room.close()
    this.#room = room
    this.#early.length = 0
    this.#watch(room)
    this.changed()
  }

  #watch(room: Room): void {
    room.done.catch((error: unknown) => {
      if (room === this.#room) this.#settle(() => this.#fail(error))
    })
  }

  /** Keys are answered even while text is being selected, then in the next frame. */
  #heard(): void {
    if (this.#room.view.isCopying) this.#draw()
    else this.changed()
  }

  #draw(): void {
    if (!this.#screen.isReady) {
      // The terminal has not taken earlier frames: do not queue more.
      if (!this.#isInTerminal) this.changed()
      return
    }
    this.#screen.draw(this.#room.view.frame(this.#screen.size, Date.now()))
    this.#drawnAt = performance.now()
    if (this.#early.length > 0) this.#makeUp()
  }

  /** Leaves on a signal; a second one ends the process immediately. */
  #depart(exit: number): void {
    if (this.#exit !== null) process.exit(this.#exit)
    this.#exit = exit
    this.#departing.abort()
    this.#settle(() => this.#end(exit))
  }

  /** Waits for a running session to end. */
  #settle(ending: () => void): void {
    if (this.#isInTerminal) this.#ending ??= ending
    else ending()
  }

  async #inTerminal(hostId: number, say: (text: string, isBad?: boolean) => void): Promise<void> {
    try {
      const message = await this.#options.runTerminal(hostId, this.#departing.signal)
      if (message !== null) say(message)
    } catch (error) {
      if (error instanceof RsmError) say(shortMessage(error), true)
      else this.#ending ??= () => this.#fail(error)
    }
    this.#isInTerminal = false
    if (this.#ending === null) this.#screen.enter()
    else this.#ending()
  }
}
