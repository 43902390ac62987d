/** All of what is kept of the output of all hosts together, in characters, where a format shows it later. */
const keptOfAll = 64 * 1024 * 1024
const mostOfOne = 1024 * 1024
const leastOfOne = 8 * 1024

/** How many characters of one host are kept, so that all together stay within bounds. */
export function keptPerHost(hostCount: number): number {
  return Math.max(leastOfOne, Math.min(mostOfOne, Math.floor(keptOfAll / Math.max(1, hostCount))))
}

/** Text within a bound: of more, the first and the last half, and a line between them that says so. */
export class BoundedText {
  readonly #half: number
  #head = ''
  #tail: string[] = []
  #tailLength = 0
  #dropped = 0

  constructor(limit: number) {
    this.#half = Math.floor(limit / 2)
  }

  get isEmpty(): boolean {
    return this.#head === ''
  }

  push(data: string): void {
    const room = this.#half - this.#head.length
    if (room > 0) this.#head += data.slice(0, room)
    if (data.length <= room) return
    const rest = room > 0 ? data.slice(room) : data
    this.#tail.push(rest)
    this.#tailLength += rest.length
    while (this.#tailLength - (this.#tail[0]?.length ?? 0) >= this.#half) {
      const length = this.#tail.shift()?.length ?? 0
      this.#tailLength -= length
      this.#dropped += length
    }
  }

  clear(): void {
    this.#head = ''
    this.#tail = []
    this.#tailLength = 0
    this.#dropped = 0
  }

  toString(): string {
    const tail = this.#tail.join('')
    const kept = tail.slice(-this.#half)
    const dropped = this.#dropped + tail.length - kept.length
    if (dropped === 0) return this.#head + kept
    return `${this.#head}\n[... ${dropped} characters left out ...]\n${kept}`
  }
}
