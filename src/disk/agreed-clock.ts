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
import { checkedJson, hasCheck, withoutCheck } from './checked-json.ts'
import { isDiskFull, writeFileDurably } from './durable.ts'

/** What a machine's clocks show; tests put their own in its place. */
export interface Clocks {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since the boot, by CLOCK_BOOTTIME: time in suspend counts. */
  sinceBoot(): number
}

export const sinceBoot = (): number => uptime() * 1000

/** How old, in milliseconds, what was stamped at `from`, or between `from` and `to`, surely is. */
export type Age = (from: number, to?: number) => number

const checkInterval = 60_000

export interface AgreedClockOptions {
  path: string
  clocks: Clocks
  /** The newest time in the data, for a directory without the file `path`: one that 0.1.0 wrote, or a new one (null). */
  newest(): Promise<number | null>
  /** The clock begins to be doubted, differently, or (null) no more. */
  changed(doubt: ClockDoubt | null): void
  log: (message: string, fields: Record<string, unknown>) => void
}

/**
 * Whether the wall clock is believed, kept in a file over restarts: all that is removed because it is old is asked about
 * here (contract §11 "Time").
 */
export class AgreedClock {
  #time: AgreedTime
  /** Minutes ahead that were told last; null: of a former process, to be told again. */
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

  /** Looks at the clocks; what it answers holds for now. */
  age(): Age {
    this.#check()
    const time = this.#time
    return (from, to) => ageOf(time, from, to)
  }

  /** Someone says that the clock is right. Durable when it resolves. */
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
    // To the minute: what is told once is not told again for a second's drift.
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
        // The one before it stands: then more waits than has to.
        if (!isDiskFull(error)) log('what the clock showed could not be written down', { path, err: error })
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
    log('what the clock showed before is damaged: it is taken from the data', { path })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    log('what the clock showed before cannot be read: it is taken from the data', { path, err: error })
  }
  return null
}
