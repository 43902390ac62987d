/** Milliseconds for a linked agent to send an end or more output once an end is overdue. */
const lastWord = 60_000
/** Longest milliseconds between checks that prove silence; beyond, server or store may have stalled. */
const longestGap = 30_000
/** Milliseconds that a linked agent may send output after a cancel. */
const outputAfterCancel = 10 * 60_000
/** Milliseconds beyond twice the longest silence after which nothing keeps an execution RUNNING. */
const lastGrace = 3600_000

/** Milliseconds beyond its timeout that an execution may be silent before it is LOST (contract §4). */
export const silence = 10 * 60_000
/** The same for an execution without a timeout. */
const silenceWithoutTimeout = 24 * 3600_000

const mayStillRun = 'it may still be running there'
const overdue = `its agent reported no end within the timeout plus 10 minutes; ${mayStillRun}`
const cancelIgnored = `cancelled, but its agent reported no end; ${mayStillRun}`

/** Bounds how long a host may keep one execution RUNNING (contract §4); times are monotonic milliseconds. */
export class Watch {
  isCancelled = false
  readonly #longest: number
  #since: number
  /** When the host was last seen linked, or the execution first seen RUNNING. */
  #linkedAt: number
  #polledAt: number
  #isLinked = false
  /** Time with a link: a suspended or unreachable host cannot report an end. */
  #linked = 0
  /** `#linked` when the cancel was first seen while linked. */
  #cancelledAt: number | null = null
  #quiet: { readonly sequence: number; readonly at: number } | null = null

  /** `longest`: longest run in seconds; 0 for unlimited. */
  constructor(longest: number, now: number) {
    this.#longest = longest
    this.#since = now
    this.#linkedAt = now
    this.#polledAt = now
  }

  /** Skips the time since the last check, because no end could be stored. */
  pause(now: number): void {
    const paused = now - this.#polledAt
    this.#polledAt = now
    this.#since += paused
    this.#linkedAt += paused
    this.#quiet = null
  }

  /** The host has no link. Returns why the execution is LOST, or null. */
  away(now: number): string | null {
    this.#isLinked = false
    this.#polledAt = now
    const silent = now - this.#linkedAt
    if (isTooSilent(this.#longest, silent)) return silentError(silent)
    return this.#isOver(now) ? this.#reason : null
  }

  /** The host is linked. Returns whether an end is overdue, so that `hear` must be called. */
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

  /** `sequence`: last stored piece of output. Returns why the execution is LOST, or null. */
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

/** `longest`: longest run in seconds, gates included; 0 for unlimited. `silent`: milliseconds. */
export function isTooSilent(longest: number, silent: number): boolean {
  return silent > (longest === 0 ? silenceWithoutTimeout : longest * 1000 + silence)
}

export const silentError = (silent: number): string => `no report for ${Math.round(silent / 1000)} s`
