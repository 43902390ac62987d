import { closeSync, constants, existsSync, fstatSync, ftruncateSync, openSync, readdirSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { faultPoint } from '#fault-point'
import type { Clock } from '../clock.ts'
import type { Log, ThrottledErrors } from '../log.ts'
import { type Writer, writersAmong, writersWithin } from '../processes/writers.ts'
import type { Execution } from './execution.ts'

/** Milliseconds between two looks at who still writes. */
const pollInterval = 1_000
/** Milliseconds until the next look at the sizes, while a spool still grows. */
const growingPollInterval = 50
/** Bytes tolerated after the script's end before the spool is truncated. */
const maxTrailingBytes = 1024 * 1024
const spools = ['stdout', 'stderr'] as const

/** Milliseconds for which the directory of an acknowledged execution stays. */
const removalDelay = 30_000
/** Bytes; a directory with more output goes at once, because a disk must not fill up for the sake of speed. */
const largestLeftover = 1024 * 1024
/** Directories that wait for their removal. */
const mostLeftovers = 1000

interface HeldSpool {
  readonly path: string
  /**
   * Kept open, so that its user gets no lease on the file: opening a leased one waits for up to 45 s (fcntl(2)). Null while
   * there is one from before.
   */
  fd: number | null
  /** Bytes that belong to the script. */
  end: number
}

interface Held {
  writers: readonly Writer[]
  readonly spools: readonly HeldSpool[]
  /** Looks in a row that found no writer; a process may pass its output on between two of them. */
  misses: number
}

/**
 * Truncates the spools of ended scripts while processes that they left running still write to them, because that output
 * would fill the disk, even through a deleted file.
 */
export class HeldOutput {
  readonly #clock: Clock
  readonly #errors: ThrottledErrors
  /** Keyed by spool directory. */
  readonly #held = new Map<string, Held>()
  readonly #waiting = new Map<string, () => void>()
  #lookedAt = 0
  #cancelTimer: (() => void) | undefined

  constructor(clock: Clock, errors: ThrottledErrors) {
    this.#clock = clock
    this.#errors = errors
  }

  /** Freezes the spools at their current size; later output is truncated. */
  hold(place: string, writers: readonly Writer[]): void {
    if (writers.length === 0 || this.#held.has(place)) return
    this.#logged(place, () => {
      const opened = spools.map((name) => {
        const path = join(place, name)
        const fd = openedForTruncation(path)
        return { path, fd, end: fd === null ? 0 : fstatSync(fd).size }
      })
      this.#held.set(place, { writers, spools: opened, misses: 0 })
      this.#cancelTimer ??= this.#clock.after(pollInterval, () => this.#poll())
    })
  }

  /** Holds the output left by ended executions. Skips `running`, the spool directories in use. */
  find(directories: readonly string[], running: ReadonlySet<string> = new Set()): void {
    this.#logged('', () => {
      const places = directories.flatMap(placesIn).filter((place) => !running.has(place))
      for (const [place, writers] of writersWithin(places)) this.hold(place, writers)
    })
  }

  /** Whether a process still holds output below the directory. */
  holds(directory: string): boolean {
    return this.#below(directory).length > 0
  }

  /** Nothing below the directory is needed any more. Calls `released` once no process holds output there. */
  whenReleased(directory: string, released: () => void): void {
    for (const { spools } of this.#below(directory)) for (const spool of spools) spool.end = 0
    this.#waiting.set(directory, released)
    this.#notify()
  }

  /** The next agent scans /proc again. */
  stop(): void {
    this.#cancelTimer?.()
    for (const place of this.#held.keys()) this.#release(place)
    this.#waiting.clear()
  }

  #below(directory: string): Held[] {
    return [...this.#held].flatMap(([place, held]) => (`${place}/`.startsWith(`${directory}/`) ? [held] : []))
  }

  #release(place: string): void {
    for (const { fd } of this.#held.get(place)?.spools ?? []) if (fd !== null) closeSync(fd)
    this.#held.delete(place)
  }

  #notify(): void {
    for (const [directory, released] of this.#waiting) {
      if (this.holds(directory)) continue
      this.#waiting.delete(directory)
      released()
    }
  }

  #poll(): void {
    let isGrowing = false
    for (const [place, held] of this.#held)
      this.#logged(place, () => {
        for (const spool of held.spools) isGrowing = this.#truncated(spool) || isGrowing
      })
    if (this.#clock.monotonic() - this.#lookedAt >= pollInterval) {
      this.#lookedAt = this.#clock.monotonic()
      this.#logged('', () => this.#refreshWriters())
      this.#notify()
    }
    const next = isGrowing ? growingPollInterval : pollInterval
    this.#cancelTimer = this.#held.size > 0 ? this.#clock.after(next, () => this.#poll()) : undefined
  }

  /** Returns whether anything was truncated. */
  #truncated(spool: HeldSpool): boolean {
    spool.fd ??= openedForTruncation(spool.path)
    if (spool.fd === null || fstatSync(spool.fd).size <= spool.end + maxTrailingBytes) return false
    ftruncateSync(spool.fd, spool.end)
    return true
  }

  /** Those known are looked at first; all processes are scanned only for the places that these have left. */
  #refreshWriters(): void {
    const known = [...this.#held.values()].flatMap(({ writers }) => writers.map(({ pid }) => pid))
    const found = writersAmong(known, [...this.#held.keys()])
    const left = [...this.#held.keys()].filter((place) => !found.has(place))
    const passedOn = writersWithin(left)
    for (const [place, held] of this.#held) {
      held.writers = found.get(place) ?? passedOn.get(place) ?? []
      held.misses = held.writers.length > 0 ? 0 : held.misses + 1
      if (held.misses > 1) this.#release(place)
    }
  }

  #logged(place: string, act: () => void): void {
    this.#errors.attempt('could not check which processes still hold script output', place, act)
  }
}

function openedForTruncation(path: string): number | null {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return null
  }
}

/** Spool directories of an execution: its own and those of its gates (`placeOf`). */
function placesIn(directory: string): string[] {
  if (!existsSync(directory)) return []
  const gates = readdirSync(directory).filter((name) => /^(verify|rollback)-\d+$/.test(name))
  return [directory, ...gates.map((name) => join(directory, name))]
}

/**
 * Removes directories of acknowledged executions some time later, together: ext4 gives no inode away again within
 * seconds of its deletion and searches past each of those, so that deleting at once makes the next start slower.
 */
export class Leftovers {
  readonly #clock: Clock
  readonly #log: Log
  readonly #held: HeldOutput
  #waiting: string[] = []
  #cancelTimer: (() => void) | undefined

  constructor(clock: Clock, log: Log, held: HeldOutput) {
    this.#clock = clock
    this.#log = log
    this.#held = held
  }

  /** Removes directories that an earlier agent left and no execution has; holds the output of the others. */
  async takeUp(directory: string, executions: ReadonlyMap<string, Execution>): Promise<void> {
    const entries = await readdir(directory, { withFileTypes: true })
    const pathOf = ({ name }: { name: string }) => join(directory, name)
    const running = [...executions.values()].filter(({ state }) => state === 'RUNNING')
    const directories = entries.filter((entry) => entry.isDirectory()).map(pathOf)
    this.#held.find(directories, new Set(running.map(({ place }) => place)))
    for (const entry of entries.filter(({ name }) => !executions.has(name))) {
      const path = pathOf(entry)
      if (this.#held.holds(path)) this.remove(path)
      else await rm(path, { recursive: true, force: true })
    }
  }

  /** `bytes` of output lie in the directory. What is left when the agent ends, the next one removes at its start. */
  add(directory: string, bytes: number): void {
    if (bytes > largestLeftover || this.#waiting.length >= mostLeftovers) return this.remove(directory)
    this.#waiting.push(directory)
    this.#cancelTimer ??= this.#clock.after(removalDelay, () => {
      this.#cancelTimer = undefined
      for (const waiting of this.#waiting.splice(0)) this.remove(waiting)
    })
  }

  stop(): void {
    this.#cancelTimer?.()
  }

  /** Removes the directory as soon as no process holds output in it. */
  remove(directory: string): void {
    this.#held.whenReleased(directory, () => {
      faultPoint('agent.removed.before')
      rm(directory, { recursive: true, force: true }).then(
        () => faultPoint('agent.removed.after'),
        (error: unknown) =>
          this.#log('WARN', 'could not remove a spool', { directory, error: String(error) }),
      )
    })
  }
}
