/** Bytes of one request. */
const least = 64 * 1024
const first = 512 * 1024
/** Milliseconds of one request under which the next is larger, by as much as fits into that time, and over which it is smaller. */
const quick = 1_000
const mostGrowth = 8
const slow = 5_000

/** How much of something long goes into one request, so that each arrives long before a server gives up on it. */
export class PartSize {
  readonly #most: number
  #bytes = first

  /** In bytes. */
  constructor(most: number) {
    this.#most = most
  }

  /** From 64 KiB to the most. */
  get bytes(): number {
    return this.#bytes
  }

  /** What one request took, in milliseconds, decides on the next. */
  took(milliseconds: number): void {
    if (milliseconds < quick) {
      const growth = Math.min(mostGrowth, Math.max(2, Math.floor(quick / milliseconds)))
      this.#bytes = Math.min(growth * this.#bytes, this.#most)
    } else if (milliseconds > slow) this.#bytes = Math.max(this.#bytes / 2, least)
  }
}
