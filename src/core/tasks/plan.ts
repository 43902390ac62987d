import {
  type BatchSize,
  type FinalStatus,
  isFailure,
  isFinal,
  type MaxFailures,
  type ResultStatus,
  type Strategy,
} from './task.ts'

/** Seconds that a copy or a fetch may take on a host where nothing else is asked for: a large file over a slow line. */
export const copyTimeout = 3600

/** Seconds that an upgrade may take, for a download and until terminals are closed, where nothing else is asked for. */
export const upgradeTimeout = 1800

/** Seconds of run time on a host where neither the call nor the script says any (contract §4). */
export const defaultTimeout = 300

/** How a task goes over its hosts (contract §4). A task's record has all of these fields. */
export interface PlanOptions {
  readonly strategy: Strategy
  /** ROLLING only; null is a quarter of the hosts. */
  readonly batchSize: BatchSize | null
  /** null is no limit. */
  readonly concurrency: number | null
  /** null is 0 for SEQUENTIAL and ROLLING, no limit for PARALLEL. */
  readonly maxFailures: MaxFailures | null
  readonly pauseSeconds: number
}

/** A count, or a percentage like `25%` of all hosts; exact, for both factors are whole numbers. */
function portion(size: number | string, hostCount: number, round: (share: number) => number): number {
  return typeof size === 'number' ? size : round((hostCount * Number.parseInt(size, 10)) / 100)
}

/**
 * Sizes of the batches, in order; they add up to `hostCount`. PARALLEL is one batch, SEQUENTIAL batches of one, ROLLING
 * as `batchSize` says: percentages are rounded up and at least 1, the last entry of a list repeats.
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

/** The number of failures that a task bears: one more stops it. Percentages are rounded down. */
export function failureLimit(hostCount: number, options: PlanOptions): number {
  if (options.maxFailures !== null) return portion(options.maxFailures, hostCount, Math.floor)
  return options.strategy === 'PARALLEL' ? Number.POSITIVE_INFINITY : 0
}

/** Where a host stands, to build a plan anew: `hadTurn` includes those that wait to be reachable. */
export interface Standing {
  readonly status: ResultStatus
  readonly hadTurn: boolean
}

export interface Decision {
  /** Positions whose turn comes now, ascending. */
  readonly start: readonly number[]
  /** Positions that become SKIPPED, ascending. */
  readonly skip: readonly number[]
  /** The pause between batches ends then (ms): keep it with the task, and ask again then. Null: no pause. */
  readonly pauseUntil: number | null
  /** Every host has its final status; `skip` counted in. */
  readonly done: boolean
}

const waiting = 0
const inFlight = 1
const ended = 2

/**
 * Which hosts of a running task start when. Positions are those of the plan's order. Tell it every end by `settled`,
 * then act on `decide`, which takes its own decision as carried out; where that fails, build the plan anew from what is
 * on disk. It decides the same then. A task of n hosts costs O(n) over its whole life.
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
  /** The first position that still waits for its turn. */
  #next = 0
  /** The first batch that has not ended. */
  #batch = 0
  /** The last batch of which a host had its turn. */
  #begun = -1
  #pauseUntil: number | null

  /** `pauseUntil` (ms) as the last decision said it. */
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

  /** A host has come to its end, whether or not its turn had come. A second end changes nothing. */
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

  /** What happens at `now` (ms of the clock that `pauseUntil` was taken from). */
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

  /** Moves to the next host that waits; false when none does. */
  #seekNext(): boolean {
    while (this.#next < this.#states.length && this.#states[this.#next] !== waiting) this.#next++
    while (this.#batch < this.batches.length && this.#openIn[this.#batch] === 0) this.#batch++
    if (this.#next < this.#states.length) return true
    this.#pauseUntil = null
    return false
  }

  /** Whether the batch of the next host has begun, or may begin now: the former has ended, and the pause after it. */
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

  /** PARALLEL looks at the limit before each host, the others before each batch (contract §4). */
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

/** A person is asked about more hosts than these. */
export const unasked = 20

/** Whether a person is asked before it runs on `count` hosts of a fleet of `total`: about many, and about all there are. */
export function asksFirst(count: number, total: number): boolean {
  return count > unasked || (count > 1 && count >= total)
}
