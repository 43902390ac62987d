/** Bytes on their way to another server before whoever sends them is to wait … */
const high = 64 * 1024
/** … and to go on. */
const low = 16 * 1024
/** What a message costs beside what is in it: single characters pile up as well. */
const overhead = 200

/** What one client or terminal has on its way, and whether that is too much. */
export class OnItsWay {
  bytes = 0
  #isFull = false
  readonly #changed: (isFull: boolean) => void

  constructor(changed: (isFull: boolean) => void) {
    this.#changed = changed
  }

  /** Answers what is to be called when `size` bytes have been taken. */
  add(size: number): () => void {
    const all = size + overhead
    this.bytes += all
    this.#look()
    return () => {
      this.bytes -= all
      this.#look()
    }
  }

  #look(): void {
    const isFull = this.bytes > (this.#isFull ? low : high)
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    this.#changed(isFull)
  }
}
