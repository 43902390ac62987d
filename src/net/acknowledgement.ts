/** Output is acknowledged after this many characters, or milliseconds. */
const ackEvery = 64 * 1024
const ackWithin = 50

/** Which output has been shown, told to the server often enough for it to go on and no oftener. */
export class Acknowledgement {
  /** Null while there is no connection. */
  #send: ((sequence: number) => void) | null = null
  #shown = -1
  #told = -1
  #untold = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  attach(send: (sequence: number) => void): void {
    this.#send = send
    // What was told over a connection that was lost may not have come.
    this.#told = -1
    this.#tell()
  }

  detach(): void {
    this.#send = null
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  shown(sequence: number, characters: number): void {
    this.#shown = sequence
    this.#untold += characters
    if (this.#untold >= ackEvery) this.#tell()
    else if (this.#send !== null) this.#timer ??= setTimeout(() => this.#tell(), ackWithin)
  }

  #tell(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#send === null || this.#shown === this.#told) return
    this.#told = this.#shown
    this.#untold = 0
    this.#send(this.#shown)
  }
}
