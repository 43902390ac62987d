import type { Log } from '../../../disk/log.ts'

/** Milliseconds that an acknowledgement waits for another write to join. */
const longest = 1000
/** Milliseconds that a younger one stays behind: most scripts end earlier, which leaves nothing to write. */
const settling = 100

/**
 * Batches the notes that agents received their executions. Callers do not wait for the disk, because the
 * agent's next HELLO settles any note that a crash loses. So notes join other commits at no cost, or take one
 * commit a second.
 */
export class AckBatcher {
  #waiting: { id: string; at: number }[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #write: (ids: string[]) => Promise<unknown>
  readonly #log: Log

  /** `write` gets execution ids; some of the executions may have ended. */
  constructor(write: (ids: string[]) => Promise<unknown>, log: Log) {
    this.#write = write
    this.#log = log
  }

  add(id: string): void {
    this.#waiting.push({ id, at: performance.now() })
    this.#arm()
  }

  /** Another write is starting: due notes share its fsync. */
  join(): void {
    void this.#flush(performance.now() - settling)
  }

  /** Resolves once all are durable or refused. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#flush(Number.POSITIVE_INFINITY)
  }

  async #flush(until: number): Promise<void> {
    const young = this.#waiting.findIndex(({ at }) => at > until)
    const due = this.#waiting.splice(0, young < 0 ? this.#waiting.length : young)
    if (due.length === 0) return
    await this.#write(due.map(({ id }) => id)).catch((error: unknown) => {
      this.#log.warn({ err: error }, 'could not record that agents received their executions')
    })
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.#flush(performance.now())
    }, longest)
    this.#timer.unref()
  }
}
