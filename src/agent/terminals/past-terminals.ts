import { BoundedMap } from '../../core/bounded-map.ts'

/** Milliseconds for which the id of an ended terminal opens no other: a signature is good for 5 minutes. */
const idKept = 10 * 60_000
const mostIds = 10_000

/** Terminals that have ended, or were closed before they began: their ids open no other. */
export class PastTerminals {
  readonly #endedAt = new BoundedMap<string, number>(mostIds)

  /** `now` in monotonic milliseconds. */
  add(sessionId: string, now: number): void {
    for (const [id, endedAt] of this.#endedAt) if (now - endedAt > idKept) this.#endedAt.delete(id)
    this.#endedAt.set(sessionId, now)
  }

  has(sessionId: string): boolean {
    return this.#endedAt.has(sessionId)
  }
}
