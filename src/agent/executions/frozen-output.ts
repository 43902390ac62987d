import { closeSync, constants, existsSync, fstatSync, ftruncateSync, openSync, readdirSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { faultPoint } from '#fault-point'
import type { Clock } from '../clock.ts'
import type { Log, ThrottledErrors } from '../log.ts'
import { type Writer, writersAmong, writersWithin } from '../processes/writers.ts'
import type { Execution } from './execution.ts'

/** Milliseconds between two checks for writers. */
const pollInterval = 1_000
/** Milliseconds until the next check of the sizes, while a spool still grows. */
const growingPollInterval = 50
/** Bytes tolerated after the script's end before the spool is truncated. */
const maxTrailingBytes = 1024 * 1024
const spools = ['stdout', 'stderr'] as const

/** Milliseconds for which the directory of an acknowledged execution is kept. */
const removalDelay = 30_000
/** Bytes; a directory with more output is removed at once, to free the disk. */
const largestLeftover = 1024 * 1024
const maxLeftovers = 1000

interface FrozenSpool {
  readonly path: string
  /**
   * Kept open, so that the script's user cannot take a lease on the file: opening a leased file blocks for up
   * to 45 s (fcntl(2)). Null while an older lease exists.
   */
  fd: number | null
  /** Bytes that belong to the script. */
  end: number
}

interface FrozenPlace {
  writers: readonly Writer[]
  readonly spools: readonly FrozenSpool[]
  /** Consecutive checks without a writer; a process may pass its output on between two checks. */
  misses: number
}

/**
 * Truncates the spools of ended scripts while processes that they left running still write to them, because that output
 * would fill the disk, even through a deleted file.
 */
export class FrozenOutput {
  readonly #clock: Clock
  readonly #errors: ThrottledErrors
  /** Keyed by spool directory. */
  readonly #frozen = new Map<string, FrozenPlace>()
  readonly #waiting = new Map<string, () => void>()
  #checkedAt = 0
  #cancelTimer: (() => void) | undefined

  constructor(clock: Clock, errors: ThrottledErrors) {
    this.#clock = clock
    this.#errors = errors
  }

  /** Freezes the spools at their current size; later output is truncated. */
  add(place: string, writers: readonly Writer[]): void {
    if (writers.length === 0 || this.#frozen.has(place)) return
    this.#logged(place, () => {
      const opened = spools.map((name) => {
        const path = join(place, name)
        const fd = openedForTruncation(path)
        return { path, fd, end: fd === null ? 0 : fstatSync(fd).size }
      })
      this.#frozen.set(place, { writers, spools: opened, misses: 0 })
      this.#cancelTimer ??= this.#clock.after(pollInterval, () => this.#poll())
    })
  }

  /** Freezes the output left by ended executions. Skips `running`, the spool directories in use. */
  find(directories: readonly string[], running: ReadonlySet<string> = new Set()): void {
    this.#logged('', () => {
      const places = directories.flatMap(placesIn).filter((place) => !running.has(place))
      for (const [place, writers] of writersWithin(places)) this.add(place, writers)
    })
  }

  hasWriters(directory: string): boolean {
    return this.#below(directory).length > 0
  }

  /** Discards all output below the directory. Calls `closed` once no process holds output there. */
  whenClosed(directory: string, closed: () => void): void {
    for (const { spools } of this.#below(directory)) for (const spool of spools) spool.end = 0
    this.#waiting.set(directory, closed)
    this.#notify()
  }

  /** The next agent scans /proc again. */
  stop(): void {
    this.#cancelTimer?.()
    for (const place of this.#frozen.keys()) this.#close(place)
    this.#waiting.clear()
  }

  #below(directory: string): FrozenPlace[] {
    return [...this.#frozen].flatMap(([place, frozen]) =>
      `${place}/`.startsWith(`${directory}/`) ? [frozen] : [],
    )
  }

  #close(place: string): void {
    for (const { fd } of this.#frozen.get(place)?.spools ?? []) if (fd !== null) closeSync(fd)
    this.#frozen.delete(place)
  }

  #notify(): void {
    for (const [directory, closed] of this.#waiting) {
      if (this.hasWriters(directory)) continue
      this.#waiting.delete(directory)
      closed()
    }
  }

  #poll(): void {
    let isGrowing = false
    for (const [place, frozen] of this.#frozen)
      this.#logged(place, () => {
        for (const spool of frozen.spools) isGrowing = this.#truncated(spool) || isGrowing
      })
    if (this.#clock.monotonic() - this.#checkedAt >= pollInterval) {
      this.#checkedAt = this.#clock.monotonic()
      this.#logged('', () => this.#refreshWriters())
      this.#notify()
    }
    const next = isGrowing ? growingPollInterval : pollInterval
    this.#cancelTimer = this.#frozen.size > 0 ? this.#clock.after(next, () => this.#poll()) : undefined
  }

  #truncated(spool: FrozenSpool): boolean {
    spool.fd ??= openedForTruncation(spool.path)
    if (spool.fd === null || fstatSync(spool.fd).size <= spool.end + maxTrailingBytes) return false
    ftruncateSync(spool.fd, spool.end)
    return true
  }

  /** Checks known writers first; scans all processes only for places without one. */
  #refreshWriters(): void {
    const known = [...this.#frozen.values()].flatMap(({ writers }) => writers.map(({ pid }) => pid))
    const found = writersAmong(known, [...this.#frozen.keys()])
    const left = [...this.#frozen.keys()].filter((place) => !found.has(place))
    const passedOn = writersWithin(left)
    for (const [place, frozen] of this.#frozen) {
      frozen.writers = found.get(place) ?? passedOn.get(place) ?? []
      frozen.misses = frozen.writers.length > 0 ? 0 : frozen.misses + 1
      if (frozen.misses > 1) this.#close(place)
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
 * Removes directories of acknowledged executions later, together: for seconds, ext4 does not reuse the inodes
 * of deleted files and searches past them, so that deleting at once slows the next start.
 */
export class Leftovers {
  readonly #clock: Clock
  readonly #log: Log
  readonly #frozen: FrozenOutput
  #waiting: string[] = []
  #cancelTimer: (() => void) | undefined

  constructor(clock: Clock, log: Log, frozen: FrozenOutput) {
    this.#clock = clock
    this.#log = log
    this.#frozen = frozen
  }

  /** Removes directories of an earlier agent that no execution uses; freezes the output of the others. */
  async takeUp(directory: string, executions: ReadonlyMap<string, Execution>): Promise<void> {
    const entries = await readdir(directory, { withFileTypes: true })
    const pathOf = ({ name }: { name: string }) => join(directory, name)
    const running = [...executions.values()].filter(({ state }) => state === 'RUNNING')
    const directories = entries.filter((entry) => entry.isDirectory()).map(pathOf)
    this.#frozen.find(directories, new Set(running.map(({ place }) => place)))
    for (const entry of entries.filter(({ name }) => !executions.has(name))) {
      const path = pathOf(entry)
      if (this.#frozen.hasWriters(path)) this.remove(path)
      else await rm(path, { recursive: true, force: true })
    }
  }

  /** `bytes` is the size of its output. The next agent removes at its start whatever remains. */
  add(directory: string, bytes: number): void {
    if (bytes > largestLeftover || this.#waiting.length >= maxLeftovers) return this.remove(directory)
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
    this.#frozen.whenClosed(directory, () => {
      faultPoint('agent.removed.before')
      rm(directory, { recursive: true, force: true }).then(
        () => faultPoint('agent.removed.after'),
        (error: unknown) =>
          this.#log('WARN', 'could not remove a spool', { directory, error: String(error) }),
      )
    })
  }
}
