/** An acknowledgement waits for so long for another write to go out with; milliseconds. */
const longest = 1000
/** One that is younger stays behind: most scripts end before, and then nothing is left to write. */
const settling = 100

/**
 * That agents have what they were sent. Nothing waits for it to be on disk: what is not there after a crash is judged by
 * the agent's next HELLO. So it costs no commit where others are under way, and one a second where none is.
 */
export class AckBatcher {
  /** In the order in which they came. */
  #waiting: { id: string; at: number }[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #write: (ids: string[]) => Promise<void>

  /** `write` gets the ids of executions, of which some may have ended. */
  constructor(write: (ids: string[]) => Promise<void>) {
    this.#write = write
  }

  add(id: string): void {
    this.#waiting.push({ id, at: performance.now() })
    this.#arm()
  }

  /** Another write is on its way: what is due shares its fsync. */
  join(): void {
    void this.#flush(performance.now() - settling)
  }

  /** Resolves when all is durable, or refused. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#flush(Number.POSITIVE_INFINITY)
  }

  async #flush(until: number): Promise<void> {
    const young = this.#waiting.findIndex(({ at }) => at > until)
    const due = this.#waiting.splice(0, young < 0 ? this.#waiting.length : young)
    if (due.length > 0) await this.#write(due.map(({ id }) => id))
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.#flush(performance.now())
    }, longest)
    this.#timer.unref()
  }
}
