/** Characters of output that a format keeps for all hosts together. */
const keptOfAll = 64 * 1024 * 1024
const mostOfOne = 1024 * 1024
const leastOfOne = 8 * 1024

/** Characters kept per host, so that all together stay within the limit. */
export function keptPerHost(hostCount: number): number {
  return Math.max(leastOfOne, Math.min(mostOfOne, Math.floor(keptOfAll / Math.max(1, hostCount))))
}

/** Text within a limit: of longer text the first and last half, with a line between them that says so. */
export class BoundedText {
  readonly #half: number
  #head = ''
  /** Two pieces of the end; the second grows to half the limit, then replaces the first. */
  #older = ''
  #newer = ''
  #dropped = 0

  constructor(limit: number) {
    this.#half = Math.max(1, Math.floor(limit / 2))
  }

  get isEmpty(): boolean {
    return this.#head === ''
  }

  push(data: string): void {
    const room = Math.max(0, this.#half - this.#head.length)
    if (room > 0) this.#head += data.slice(0, room)
    if (data.length <= room) return
    this.#newer += data.slice(room)
    if (this.#newer.length < this.#half) return
    this.#dropped += this.#older.length
    this.#older = this.#newer
    this.#newer = ''
  }

  clear(): void {
    this.#head = ''
    this.#older = ''
    this.#newer = ''
    this.#dropped = 0
  }

  toString(): string {
    const end = this.#older + this.#newer
    const kept = end.slice(-this.#half)
    const dropped = this.#dropped + end.length - kept.length
    if (dropped === 0) return this.#head + kept
    return `${this.#head}\n[... ${dropped} characters left out ...]\n${kept}`
  }
}
