import { pieces } from '../core/text/pieces.ts'

/** Characters of one TERMINAL_INPUT: far below the largest frame, however they are encoded. */
const frameChars = 32 * 1024
/** Bytes on their way to the server above which more is to wait. */
const fullAt = 256 * 1024
/** Characters that are kept while there is no connection. */
const heldChars = 16 * 1024

/** `full`: taken, but nothing more until there is room; `refused`: not taken. */
export type Taken = 'taken' | 'full' | 'refused'

/** Where input goes while there is a connection. */
export interface InputSink {
  readonly bufferedAmount: number
  send(data: string, sent: () => void): void
}

/** What is typed, in the order in which it was: sent while there is a connection, kept for the next one up to a bound. */
export class HeldInput {
  readonly #drained: () => void
  #sink: InputSink | undefined
  #held = ''
  #isFull = false

  constructor(drained: () => void) {
    this.#drained = drained
  }

  push(data: string): Taken {
    if (this.#sink === undefined) {
      if (this.#held.length + data.length > heldChars) return 'refused'
      this.#held += data
      return 'taken'
    }
    this.#send(this.#sink, data)
    this.#isFull = this.#sink.bufferedAmount >= fullAt
    return this.#isFull ? 'full' : 'taken'
  }

  attach(sink: InputSink): void {
    this.#sink = sink
    const held = this.#held
    this.#held = ''
    this.#send(sink, held)
  }

  detach(): void {
    this.#sink = undefined
    this.#room()
  }

  #send(sink: InputSink, data: string): void {
    for (const piece of pieces(data, frameChars)) {
      sink.send(piece, () => {
        if (sink === this.#sink && sink.bufferedAmount <= fullAt / 2) this.#room()
      })
    }
  }

  #room(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.#drained()
  }
}
