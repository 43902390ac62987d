import { BoundedMap } from '../../core/bounded-map.ts'
import type { Payloads, TerminalOpen } from '../../core/protocol/messages.ts'

/** Characters of input queued for a terminal whose TERMINAL_OPEN is being checked. */
const maxInput = 64 * 1024
const maxFrames = 1024

/** Milliseconds for which an ended terminal's id is blocked, because a signature is valid for 5 minutes. */
const idKept = 10 * 60_000
const maxIds = 10_000

/** Requests whose signature is still being checked, and input received meanwhile. */
export class Undecided {
  readonly #requests = new Set<TerminalOpen>()
  readonly #input = new Map<string, Payloads['TERMINAL_INPUT'][]>()

  begin(request: TerminalOpen): void {
    this.#requests.add(request)
  }

  end(request: TerminalOpen): void {
    this.#requests.delete(request)
  }

  asksFor(sessionId: string): boolean {
    return [...this.#requests].some((request) => request.sessionId === sessionId)
  }

  startInputQueue(sessionId: string): void {
    this.#input.set(sessionId, [])
  }

  /** Whether input of the terminal is being queued; excess input is dropped. */
  queueInput(input: Payloads['TERMINAL_INPUT']): boolean {
    const queued = this.#input.get(input.sessionId)
    if (queued === undefined) return false
    const characters = queued.reduce((sum, { data }) => sum + data.length, 0)
    if (characters + input.data.length <= maxInput && queued.length < maxFrames) queued.push(input)
    return true
  }

  takeInput(sessionId: string): readonly Payloads['TERMINAL_INPUT'][] {
    const queued = this.#input.get(sessionId) ?? []
    this.#input.delete(sessionId)
    return queued
  }
}

/** Ids of ended terminals, or of those closed before they began, which cannot be reused. */
export class PastTerminals {
  readonly #endedAt = new BoundedMap<string, number>(maxIds)

  /** `now` in monotonic milliseconds. */
  add(sessionId: string, now: number): void {
    for (const [id, endedAt] of this.#endedAt) if (now - endedAt > idKept) this.#endedAt.delete(id)
    this.#endedAt.set(sessionId, now)
  }

  has(sessionId: string): boolean {
    return this.#endedAt.has(sessionId)
  }
}
