/** Output is acknowledged after this many characters, or milliseconds. */
const ackEvery = 64 * 1024
const ackWithin = 50

/** Tells the server which output was shown: often enough that it keeps sending, and no more often. */
export class Acknowledgement {
  /** Null while there is no connection. */
  #send: ((sequence: number) => void) | null = null
  #displayed = -1
  #acknowledged = -1
  #pending = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  attach(send: (sequence: number) => void): void {
    this.#send = send
    // An acknowledgement sent over a lost connection may not have arrived.
    this.#acknowledged = -1
    this.#acknowledge()
  }

  detach(): void {
    this.#send = null
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  displayed(sequence: number, characters: number): void {
    this.#displayed = sequence
    this.#pending += characters
    if (this.#pending >= ackEvery) this.#acknowledge()
    else if (this.#send !== null) this.#timer ??= setTimeout(() => this.#acknowledge(), ackWithin)
  }

  #acknowledge(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#send === null || this.#displayed === this.#acknowledged) return
    this.#acknowledged = this.#displayed
    this.#pending = 0
    this.#send(this.#displayed)
  }
}
