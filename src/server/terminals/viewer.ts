import type { TerminalClient } from '../storage/ports/terminal-client.ts'
import { type Replay, sizeOf } from './replay.ts'

/** A client is sent no more than so many bytes that it has not acknowledged, or that its socket has not taken. */
const window = 256 * 1024

/** One client's way through the output of a terminal. */
export class Viewer {
  readonly client: TerminalClient
  /** The last sequence that it was sent. */
  cursor: number
  /** The last that it has acknowledged, or that its socket has taken. */
  shown: number
  /** Whether it was sent the end of the terminal. */
  isTold = false
  #inFlight: { sequence: number; size: number }[] = []
  #bytes = 0
  readonly #acknowledges: boolean
  readonly #moved: () => void

  /** `moved` is called when it can take more. Whoever watches need not acknowledge. */
  constructor(client: TerminalClient, after: number, watching: boolean, moved: () => void) {
    this.client = client
    this.cursor = after
    this.shown = after
    this.#acknowledges = client.acknowledges && !watching
    this.#moved = moved
  }

  /** Sends what follows, as far as the client takes it. False when what follows is kept no longer. */
  pump(replay: Replay): boolean {
    while (this.#bytes < window) {
      const chunk = replay.after(this.cursor)
      if (!chunk) return true
      const { sequence, json } = chunk
      if (
        this.cursor >= 0 &&
        this.#inFlight.length > 0 &&
        sequence > this.cursor + 1 &&
        chunk === replay.first
      )
        return false
      this.cursor = sequence
      const size = sizeOf(chunk)
      this.#inFlight.push({ sequence, size })
      this.#bytes += size
      this.client.output(sequence, json, () => {
        if (!this.#acknowledges) this.#take(sequence)
      })
    }
    return true
  }

  /** The client says that it has shown all up to here; no more than it was sent. */
  acknowledge(sequence: number): void {
    if (this.#acknowledges) this.#take(Math.min(sequence, this.cursor))
  }

  /** It can't have had what follows `newest`. */
  bound(newest: number): void {
    this.cursor = Math.min(this.cursor, newest)
    this.shown = Math.min(this.shown, newest)
  }

  #take(sequence: number): void {
    if (sequence <= this.shown) return
    this.shown = sequence
    let taken = 0
    for (const one of this.#inFlight) {
      if (one.sequence > sequence) break
      this.#bytes -= one.size
      taken++
    }
    this.#inFlight.splice(0, taken)
    this.#moved()
  }
}
