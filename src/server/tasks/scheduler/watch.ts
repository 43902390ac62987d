/** Milliseconds in which a linked agent has to send an end, or more output, once an end is due. */
const lastWord = 60_000
/** Looks further apart prove no silence: the server itself, or its store, stood still. */
const longestGap = 30_000
/** Milliseconds that a linked agent may send output after a cancel. */
const outputAfterCancel = 10 * 60_000
/** Milliseconds beyond twice the longest silence after which nothing a host does keeps an execution RUNNING. */
const lastGrace = 3600_000

/** Milliseconds beyond its timeout that an execution may be silent before it is LOST (contract §4) … */
export const silence = 10 * 60_000
/** … or that it may be when it has no timeout. */
const silenceWithoutTimeout = 24 * 3600_000

const mayStillRun = 'it may still be running there'
const overdue = `its agent reported no end within the timeout plus 10 minutes; ${mayStillRun}`
const cancelIgnored = `cancelled, but its agent reported no end; ${mayStillRun}`

/** Bounds how long a host may hold one execution RUNNING (contract §4); times are monotonic milliseconds. */
export class Watch {
  isCancelled = false
  readonly #longest: number
  #since: number
  /** The host was last seen linked, or the execution first seen RUNNING. */
  #linkedAt: number
  #polledAt: number
  #isLinked = false
  /** Time with a link: a suspended or unreachable host cannot report an end. */
  #linked = 0
  /** `#linked` when the cancel was first seen beside a link. */
  #cancelledAt: number | null = null
  #quiet: { readonly sequence: number; readonly at: number } | null = null

  /** `longest`: seconds that the execution may take; 0 for any. */
  constructor(longest: number, now: number) {
    this.#longest = longest
    this.#since = now
    this.#linkedAt = now
    this.#polledAt = now
  }

  /** Leaves out the time since the last look: no end could be stored. */
  pause(now: number): void {
    const paused = now - this.#polledAt
    this.#polledAt = now
    this.#since += paused
    this.#linkedAt += paused
    this.#quiet = null
  }

  /** The host has no link. Returns why the execution is LOST; null if it is not. */
  away(now: number): string | null {
    this.#isLinked = false
    this.#polledAt = now
    const silent = now - this.#linkedAt
    if (isTooSilent(this.#longest, silent)) return silentError(silent)
    return this.#isOver(now) ? this.#reason : null
  }

  /** The host is linked. Returns whether an end is due, so that `hear` must be called. */
  linked(now: number): boolean {
    const gap = now - this.#linkedAt
    if (this.#isLinked) this.#linked += gap
    if (!this.#isLinked || gap > longestGap) this.#quiet = null
    this.#isLinked = true
    this.#linkedAt = now
    this.#polledAt = now
    if (this.isCancelled) this.#cancelledAt ??= this.#linked
    return this.isCancelled || this.#isOver(now) || this.#runsLonger(this.#linked + lastWord)
  }

  /** `sequence`: the last stored piece of output. Returns why the execution is LOST; null if it is not. */
  hear(now: number, sequence: number): string | null {
    if (this.#quiet === null || (this.#quiet.sequence !== sequence && !this.#isOver(now)))
      this.#quiet = { sequence, at: now }
    if (now - this.#quiet.at < lastWord) return null
    return this.#reason
  }

  get #reason(): string {
    return this.isCancelled ? cancelIgnored : overdue
  }

  #runsLonger(milliseconds: number): boolean {
    return this.#longest > 0 && milliseconds > this.#longest * 1000 + silence
  }

  /** Output no longer extends the wait. */
  #isOver(now: number): boolean {
    if (this.#cancelledAt !== null && this.#linked - this.#cancelledAt > outputAfterCancel) return true
    return this.#runsLonger((now - this.#since - lastGrace) / 2)
  }
}

/** `longest`: seconds that the execution may take with all that follows on its script, 0 for any. `silent`: milliseconds since the last word. */
export function isTooSilent(longest: number, silent: number): boolean {
  return silent > (longest === 0 ? silenceWithoutTimeout : longest * 1000 + silence)
}

export const silentError = (silent: number): string => `no word of it for ${Math.round(silent / 1000)} s`
