import {
  type BatchSize,
  type FinalStatus,
  isFailure,
  isFinal,
  type MaxFailures,
  type ResultStatus,
  type Strategy,
} from './task.ts'

/** Default timeout in seconds of a copy or a fetch on a host: a large file over a slow line. */
export const copyTimeout = 3600

/** Default timeout in seconds of an upgrade: a download, and a wait until terminals are closed. */
export const upgradeTimeout = 1800

/** Default timeout in seconds on a host, if neither the call nor the script sets one (contract §4). */
export const defaultTimeout = 300

/** How a task proceeds over its hosts (contract §4). A task's record has all of these fields. */
export interface PlanOptions {
  readonly strategy: Strategy
  /** ROLLING only; null is a quarter of the hosts. */
  readonly batchSize: BatchSize | null
  /** Null: no limit. */
  readonly concurrency: number | null
  /** null is 0 for SEQUENTIAL and ROLLING, no limit for PARALLEL. */
  readonly maxFailures: MaxFailures | null
  readonly pauseSeconds: number
}

/** A count, or a percentage like `25%` of all hosts; exact, because both factors are whole numbers. */
function portion(size: number | string, hostCount: number, round: (share: number) => number): number {
  return typeof size === 'number' ? size : round((hostCount * Number.parseInt(size, 10)) / 100)
}

/**
 * Sizes of the batches, in order; they add up to `hostCount`. PARALLEL is one batch, SEQUENTIAL has batches of one,
 * ROLLING follows `batchSize`: percentages are rounded up and at least 1, the last entry of a list repeats.
 */
export function planBatches(hostCount: number, options: PlanOptions): number[] {
  if (options.strategy === 'PARALLEL') return hostCount === 0 ? [] : [hostCount]
  const steps =
    options.strategy === 'SEQUENTIAL'
      ? [1]
      : Array.isArray(options.batchSize)
        ? options.batchSize
        : [options.batchSize ?? '25%']
  const batches: number[] = []
  let rest = hostCount
  while (rest > 0) {
    const step = steps[Math.min(batches.length, steps.length - 1)] ?? 1
    const size = Math.min(rest, Math.max(1, portion(step, hostCount, Math.ceil)))
    batches.push(size)
    rest -= size
  }
  return batches
}

/** Failures that a task tolerates: one more stops it. Percentages are rounded down. */
export function failureLimit(hostCount: number, options: PlanOptions): number {
  if (options.maxFailures !== null) return portion(options.maxFailures, hostCount, Math.floor)
  return options.strategy === 'PARALLEL' ? Number.POSITIVE_INFINITY : 0
}

/** State of a host, to rebuild a plan: `hadTurn` includes hosts that wait to become reachable. */
export interface Standing {
  readonly status: ResultStatus
  readonly hadTurn: boolean
}

export interface Decision {
  readonly start: readonly number[]
  /** Positions to mark SKIPPED, ascending. */
  readonly skip: readonly number[]
  /** End of the pause between batches (ms): store it with the task, and decide again then. Null: no pause. */
  readonly pauseUntil: number | null
  /** Every host has its final status, including those in `skip`. */
  readonly done: boolean
}

const waiting = 0
const inFlight = 1
const ended = 2

/**
 * Decides which hosts of a running task start when. Positions are those of the plan's order. Report every end to
 * `settled`, then carry out `decide`, which assumes that its decision takes effect. If that fails, rebuild the plan
 * from what is on disk: it then decides the same. A task of n hosts costs O(n) over its whole life.
 */
export class Plan {
  readonly batches: readonly number[]
  readonly #options: PlanOptions
  readonly #limit: number
  readonly #states: Uint8Array
  readonly #batchOf: Uint32Array
  /** Hosts of each batch without a final status. */
  readonly #openIn: Uint32Array
  #open: number
  #inFlight = 0
  #failures = 0
  /** First position that still waits for its turn. */
  #next = 0
  #batch = 0
  /** Last batch in which a host had its turn. */
  #begun = -1
  #pauseUntil: number | null

  /** `pauseUntil` (ms): as in the last decision. */
  constructor(options: PlanOptions, hosts: readonly Standing[], pauseUntil: number | null = null) {
    this.batches = planBatches(hosts.length, options)
    this.#options = options
    this.#limit = failureLimit(hosts.length, options)
    this.#states = new Uint8Array(hosts.length)
    this.#openIn = Uint32Array.from(this.batches)
    this.#batchOf = new Uint32Array(hosts.length)
    this.#open = hosts.length
    this.#pauseUntil = pauseUntil
    let position = 0
    for (const [batch, size] of this.batches.entries()) {
      this.#batchOf.fill(batch, position, position + size)
      position += size
    }
    for (const [at, host] of hosts.entries()) {
      if (host.hadTurn || host.status === 'RUNNING') this.#begin(at)
      if (isFinal(host.status)) this.settled(at, host.status)
    }
  }

  /** A host ended, whether or not it had its turn. A second end changes nothing. */
  settled(position: number, status: FinalStatus): void {
    const state = this.#states[position]
    if (state === undefined || state === ended) return
    if (state === inFlight) this.#inFlight--
    this.#states[position] = ended
    this.#open--
    if (isFailure(status)) this.#failures++
    const batch = this.#batchOf[position] ?? 0
    this.#openIn[batch] = (this.#openIn[batch] ?? 1) - 1
  }

  /** Decides at `now` (ms of the clock of `pauseUntil`). */
  decide(now: number): Decision {
    const start: number[] = []
    while (this.#seekNext() && this.#mayStart(now)) {
      if (this.#mustStop()) return this.#decision(start, this.#skipRest())
      if (this.#inFlight >= (this.#options.concurrency ?? Number.POSITIVE_INFINITY)) break
      this.#begin(this.#next)
      start.push(this.#next)
    }
    return this.#decision(start, [])
  }

  #decision(start: number[], skip: number[]): Decision {
    return { start, skip, pauseUntil: this.#pauseUntil, done: this.#open === 0 }
  }

  #begin(position: number): void {
    this.#states[position] = inFlight
    this.#inFlight++
    this.#begun = Math.max(this.#begun, this.#batchOf[position] ?? 0)
  }

  #seekNext(): boolean {
    while (this.#next < this.#states.length && this.#states[this.#next] !== waiting) this.#next++
    while (this.#batch < this.batches.length && this.#openIn[this.#batch] === 0) this.#batch++
    if (this.#next < this.#states.length) return true
    this.#pauseUntil = null
    return false
  }

  /** Whether the batch of the next host may run: the previous batch and the pause after it are over. */
  #mayStart(now: number): boolean {
    const batch = this.#batchOf[this.#next] ?? 0
    if (batch <= this.#begun) {
      this.#pauseUntil = null
      return true
    }
    if (this.#batch < batch) {
      this.#pauseUntil = null
      return false
    }
    if (this.#begun < 0 || this.#options.pauseSeconds === 0 || this.#failures > this.#limit) {
      this.#pauseUntil = null
      return true
    }
    // A clock that was set back must not lengthen the pause.
    const latest = now + this.#options.pauseSeconds * 1000
    this.#pauseUntil = Math.min(this.#pauseUntil ?? latest, latest)
    if (now < this.#pauseUntil) return false
    this.#pauseUntil = null
    return true
  }

  /** PARALLEL checks the limit before each host, the others before each batch (contract §4). */
  #mustStop(): boolean {
    if (this.#failures <= this.#limit) return false
    return this.#options.strategy === 'PARALLEL' || (this.#batchOf[this.#next] ?? 0) > this.#begun
  }

  #skipRest(): number[] {
    const skip: number[] = []
    for (let position = this.#next; position < this.#states.length; position++)
      if (this.#states[position] === waiting) {
        skip.push(position)
        this.settled(position, 'SKIPPED')
      }
    return skip
  }
}

/** Most hosts that a task runs on without asking the user. */
export const unasked = 20

/** Whether to ask the user before a run on `count` hosts of a fleet of `total`: if it is many, or the whole fleet. */
export function asksFirst(count: number, total: number): boolean {
  return count > unasked || (count > 1 && count >= total)
}
