import type { Metrics } from '../../../core/hosts/host.ts'
import { Mutex } from '../../../core/mutex.ts'
import type { Age } from '../../../disk/agreed-clock.ts'
import { type Clock, type Repeated, repeat } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import type { History } from '../ports/presence.ts'
import { decodeSample, WaitingSamples } from '../samples.ts'
import type { Database } from './connection/database.ts'
import { appendSamples, packFinished, readSamples, removeDays, removeHost } from './stored-samples.ts'

interface HistoryOptions {
  database: Database
  clock: Clock
  log: Log
  /** Milliseconds for which appends are collected. */
  flushDelay?: number
  /** Maximum unwritten characters while PostgreSQL is unreachable: at 150 per sample, half an hour of 3,000 hosts. */
  mostWaiting?: number
}

/** Samples per statement. */
const largestBatch = 5000
/** Milliseconds between attempts to pack past hours. */
const packEvery = 10 * 60_000

/** Samples per host and hour, five a second, so that one agent cannot fill the disk. Default reports come each minute. */
const mostInHour = 18_000
const hour = 3600_000

/** Metrics history in rows (schema/contents.ts), collected for some seconds and packed by the hour. */
export function createHistory(options: HistoryOptions): History {
  return new PostgresHistory(options)
}

class PostgresHistory implements History {
  readonly #database: Database
  readonly #log: Log
  readonly #flushDelay: number
  readonly #allowance: HourlyAllowance
  /** Unwritten samples. A sample leaves only after it was written, so that `read` always sees it. */
  readonly #waiting: WaitingSamples
  #isFailing = false
  #timer: NodeJS.Timeout | null = null
  readonly #writes = new Mutex()
  readonly #packing: Repeated

  constructor({ database, clock, log, flushDelay = 5000, mostWaiting = 16 * 1024 * 1024 }: HistoryOptions) {
    this.#database = database
    this.#log = log
    this.#flushDelay = flushDelay
    this.#allowance = new HourlyAllowance(clock, log)
    this.#waiting = new WaitingSamples(clock, mostWaiting)
    this.#packing = repeat(
      packEvery,
      () => packFinished(database),
      (error) => log.warn({ err: error }, 'metrics history could not be packed'),
    )
  }

  append(hostId: number, metrics: Metrics): void {
    if (!this.#allowance.takes(hostId)) return
    this.#waiting.add(hostId, metrics)
    this.#flushSoon()
  }

  async *read(hostId: number, from: number, to: number): AsyncGenerator<Metrics> {
    // Read memory first: a sample written meanwhile is then found twice, never missed.
    const unwritten = this.#waiting.of(hostId, from, to)
    const times = new Set(unwritten.map(({ at }) => at))
    for (const { line } of unwritten) {
      const sample = decodeSample(line)
      if (sample) yield sample.metrics
    }
    for await (const { at, metrics } of readSamples(this.#database, hostId, from, to))
      if (!times.has(at)) yield metrics
  }

  async forget(hostId: number): Promise<void> {
    this.#waiting.forget(hostId)
    // Wait for the current write, which would otherwise restore samples.
    await this.#writes
      .run(() => removeHost(this.#database, hostId))
      .catch((error: unknown) =>
        this.#log.warn({ err: error, hostId }, 'could not remove the metrics history of a deleted host'),
      )
  }

  async sweep(age: Age): Promise<void> {
    await removeDays(this.#database, age)
  }

  async close(): Promise<void> {
    const packed = this.#packing.stop()
    if (this.#timer) clearTimeout(this.#timer)
    await this.#flush()
    if (this.#timer) clearTimeout(this.#timer)
    await packed
    const { size } = this.#waiting
    if (size > 0) this.#log.warn({ dropped: size }, 'the last metrics could not be written')
  }

  #flushSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      void this.#flush()
    }, this.#flushDelay).unref()
  }

  #flush(): Promise<void> {
    return this.#writes.run(() => this.#writeWaiting())
  }

  /** Never rejects: failed writes are retried until the bound drops their samples. */
  async #writeWaiting(): Promise<void> {
    const waiting = this.#waiting
    const { dropped } = waiting
    if (dropped > 0)
      this.#log.warn({ dropped }, 'metrics history could not be written for too long; samples dropped')
    waiting.dropped = 0
    try {
      for (let batch = waiting.first(largestBatch); batch.length > 0; batch = waiting.first(largestBatch)) {
        await appendSamples(this.#database, batch)
        for (const entry of batch) waiting.remove(entry)
      }
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#log.warn({ err: error }, 'cannot write metrics history; trying again')
      this.#isFailing = true
      this.#flushSoon()
    }
  }
}

/** Limits the samples of each host per hour. */
class HourlyAllowance {
  #hour = 0
  readonly #counts = new Map<number, number>()
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Whether one more sample of this host is accepted; counts it. */
  takes(hostId: number): boolean {
    const now = Math.floor(this.#clock.monotonic() / hour)
    if (now !== this.#hour) this.#counts.clear()
    this.#hour = now
    const count = (this.#counts.get(hostId) ?? 0) + 1
    this.#counts.set(hostId, count)
    if (count === mostInHour + 1)
      this.#log.warn(
        { hostId },
        "a host's metrics history of this hour is full; further samples are not kept",
      )
    return count <= mostInHour
  }
}
