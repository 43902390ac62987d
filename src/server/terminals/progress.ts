import type { Replay } from './replay.ts'

/** So much of what a client has seen is kept for one that begins anew, as a browser does that reloads. */
const keptBytes = 256 * 1024

/** How far the output of a terminal has come: from its host, to its client, and acknowledged to its agent. */
export class Progress {
  /** The last output that its agent was told of over its present link. */
  acknowledged = -1
  /** The last output that a client has acknowledged, or that was written to it. */
  #shown = -1
  /** The same of the present client alone, or of the last one: one that began anew may be behind. */
  #needed = -1
  /** The newest output that a client may have had from a former process: as many as its agent has counted, once that is known. */
  #hostHas: number
  /** After a restart it may not be known what came before. */
  #mayMiss: boolean
  readonly #replay: Replay

  /** `isWhole` is false for a terminal that a former process opened. */
  constructor(replay: Replay, isWhole: boolean) {
    this.#replay = replay
    this.#mayMiss = !isWhole
    this.#hostHas = isWhole ? -1 : Number.POSITIVE_INFINITY
  }

  /** No client can have been sent what follows this. */
  get newest(): number {
    return Math.max(this.#replay.last, this.#hostHas)
  }

  get shown(): number {
    return this.#shown
  }

  /** Whether the output that comes now is new, was sent again, or has lost what goes before it. */
  arrived(sequence: number): 'next' | 'again' | 'gap' {
    if (sequence <= this.#replay.last) {
      // It was sent again, so its acknowledgement was lost.
      this.acknowledged = -1
      return 'again'
    }
    if (sequence > this.#replay.last + 1 && !this.#mayMiss) return 'gap'
    this.#mayMiss = false
    return 'next'
  }

  /** The present client has shown so much. */
  showed(sequence: number): void {
    this.#needed = sequence
    this.#shown = Math.max(this.#shown, sequence)
  }

  /** Its agent has counted so much: nobody has seen more, who attached while that was not known. */
  bound(counted: number): void {
    this.#hostHas = Math.min(this.#hostHas, counted)
    this.#shown = Math.min(this.#shown, this.newest)
    this.#needed = Math.min(this.#needed, this.newest)
  }

  /** Up to where nobody needs the agent any more, with so much in the recording; of that, what no client needs is dropped. */
  settled(recorded: number): number {
    const upTo = Math.min(this.#replay.last, recorded, this.#shown)
    this.#replay.trim(Math.min(upTo, this.#needed), keptBytes)
    return upTo
  }
}
