import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import {
  type AgreedTime,
  ageOf,
  agreesIn,
  ahead,
  type ClockDoubt,
  confirmed,
  firstTime,
  isDoubted,
  observe,
  type Reading,
  writtenEvery,
} from '../core/clock/agreed-time.ts'
import { Mutex } from '../core/mutex.ts'
import { checkedJson, hasCheck, withoutCheck } from './digest.ts'
import { isDiskFull, writeFileDurably } from './durable.ts'

/** Clocks of the machine; tests replace them. */
export interface Clocks {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since boot by CLOCK_BOOTTIME, which includes time in suspend. */
  sinceBoot(): number
}

export const sinceBoot = (): number => uptime() * 1000

/** Minimum age in milliseconds of data stamped at `from`, or between `from` and `to`. */
export type Age = (from: number, to?: number) => number

const checkInterval = 60_000

export interface AgreedClockOptions {
  path: string
  clocks: Clocks
  /** Newest time in the data (null: a new directory), if the file `path` is missing, as after 0.1.0, or damaged. */
  newest(): Promise<number | null>
  /** Called when the doubt about the clock begins, changes or (null) ends. */
  changed(doubt: ClockDoubt | null): void
  log: (message: string, fields: Record<string, unknown>) => void
}

/**
 * Whether the wall clock can be trusted, kept in a file across restarts. Anything removed because of its age
 * must be checked here (contract §11 "Time").
 */
export class AgreedClock {
  #time: AgreedTime
  /** Minutes ahead in the last report; null: doubt of an earlier process, report it again. */
  #reported: number | null
  #written = Number.NEGATIVE_INFINITY
  readonly #writes = new Mutex()
  readonly #options: AgreedClockOptions
  readonly #timer: NodeJS.Timeout

  private constructor(options: AgreedClockOptions, kept: AgreedTime | null, time: AgreedTime) {
    this.#options = options
    this.#time = time
    this.#reported = kept && isDoubted(kept) ? null : 0
    this.#report()
    this.#timer = setInterval(() => this.#check(), checkInterval).unref()
  }

  static async open(options: AgreedClockOptions): Promise<AgreedClock> {
    const kept = readKept(options)
    const newest = kept ? null : await options.newest()
    const reading = readingOf(options.clocks)
    const time = kept ? observe(kept, reading, false) : firstTime(reading, newest)
    const clock = new AgreedClock(options, kept, time)
    await clock.#write()
    return clock
  }

  get doubt(): ClockDoubt | null {
    if (!isDoubted(this.#time)) return null
    return {
      aheadSeconds: Math.round(ahead(this.#time) / 1000),
      agreesInSeconds: Math.ceil(agreesIn(this.#time) / 1000),
    }
  }

  /** Reads the clocks; the result is valid for now. */
  age(): Age {
    this.#check()
    const time = this.#time
    return (from, to) => ageOf(time, from, to)
  }

  /** Someone confirms that the clock is right. Durable when it resolves. */
  async confirm(): Promise<void> {
    this.#check()
    this.#time = confirmed(this.#time)
    this.#report()
    await this.#write()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#check()
    await this.#write()
  }

  #check(): void {
    this.#time = observe(this.#time, readingOf(this.#options.clocks), true)
    this.#report()
    if (this.#time.last.up - this.#written >= writtenEvery) void this.#write()
  }

  #report(): void {
    const { doubt } = this
    // Rounded to minutes, so that a drift of seconds is not reported again.
    const now = Math.round((doubt?.aheadSeconds ?? 0) / 60)
    if (now === this.#reported) return
    this.#reported = now
    this.#written = Number.NEGATIVE_INFINITY
    this.#options.changed(doubt)
  }

  #write(): Promise<void> {
    const { path, log } = this.#options
    this.#written = this.#time.last.up
    return this.#writes
      .run(() => writeFileDurably(path, `${checkedJson(JSON.stringify(this.#time))}\n`))
      .catch((error: unknown) => {
        // The previous file remains, so removals wait longer than necessary.
        if (!isDiskFull(error)) log('cannot write the clock file', { path, err: error })
      })
  }
}

let boot: string | undefined
function bootId(): string {
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return boot
}

function readingOf(clocks: Clocks): Reading {
  return { wall: clocks.now(), up: clocks.sinceBoot(), bootId: bootId() }
}

function readKept({ path, log }: AgreedClockOptions): AgreedTime | null {
  try {
    const kept = readFileSync(path).subarray(0, -1)
    const json = hasCheck(kept) ? withoutCheck(kept) : null
    if (json) return JSON.parse(json.toString()) as AgreedTime
    log('the clock file is damaged: using the newest time in the data', { path })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    log('cannot read the clock file: using the newest time in the data', { path, err: error })
  }
  return null
}
