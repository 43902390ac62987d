/** Bytes of one request. */
const least = 64 * 1024
const first = 512 * 1024
const most = 8 * 1024 * 1024
/** Milliseconds of one request under which the next is larger, and over which it is smaller. */
const quick = 1_000
const slow = 5_000

/** How much of something long goes into one request, so that each arrives long before a server gives up on it. */
export class PartSize {
  #bytes = first

  /** From 64 KiB to 8 MiB. */
  get bytes(): number {
    return this.#bytes
  }

  /** What one request took, in milliseconds, decides on the next. */
  took(milliseconds: number): void {
    if (milliseconds < quick) this.#bytes = Math.min(2 * this.#bytes, most)
    else if (milliseconds > slow) this.#bytes = Math.max(this.#bytes / 2, least)
  }
}
