import { closeSync, createReadStream, fstatSync, open, write } from 'node:fs'
import { mkdir, readdir, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Mutex } from '../../../core/mutex.ts'
import type { Age } from '../../../disk/agreed-clock.ts'
import type { Clock } from '../../../disk/clock.ts'
import { isDiskFull, isMissing, nullWhereMissing } from '../../../disk/durable.ts'
import type { Log } from '../../../disk/log.ts'
import { type History, keptFor } from '../ports/presence.ts'
import { decodeSample, type WaitingSample, WaitingSamples } from '../samples.ts'

export interface FileHistoryOptions {
  directory: string
  clock: Clock
  log: Log
  /** Whether the disk has no room for samples at the moment. */
  isFull?: () => boolean
  /** Milliseconds for which appends are collected. */
  flushDelay?: number
  /** Maximum characters that wait for the disk: at 150 per sample, half an hour of 3,000 hosts. */
  mostWaiting?: number
}

const day = 24 * 3600_000

/**
 * History in files `DIRECTORY/<hostId>/<YYYY-MM-DD>.jsonl`, one for each UTC day of the samples' own time, a
 * line per sample (storage/samples.ts), never fsynced. Appends are batched and written one file at a time, so
 * that thousands of hosts keep at most one of libuv's few threads from the store.
 */
export function createFileHistory(options: FileHistoryOptions): History {
  const { directory, clock, log, flushDelay = 5000, mostWaiting = 16 * 1024 * 1024 } = options
  /** Samples not on disk yet, oldest first; removed only once written, so that `read` sees them. */
  const waiting = new WaitingSamples(clock, mostWaiting)
  let failing = false
  /** Day files that have reached their limit; logged once an hour. */
  const full = new Set<string>()
  let timer: NodeJS.Timeout | null = null
  const disk = new Mutex()

  const pathOf = (hostId: number, file = '') => join(directory, String(hostId), file)

  function flushSoon(): void {
    timer ??= setTimeout(() => {
      timer = null
      void flush()
    }, flushDelay).unref()
  }

  function flush(): Promise<void> {
    return disk.run(writeWaiting)
  }

  /** Never rejects: samples that cannot be written are retried until the bound drops them. */
  async function writeWaiting(): Promise<void> {
    const { dropped } = waiting
    if (dropped > 0)
      log.warn({ dropped }, 'metrics history could not be written for too long; samples dropped')
    waiting.dropped = 0
    // The last room of a full disk is not for samples; they wait in memory.
    if (options.isFull?.()) return flushSoon()
    let fault: unknown = null
    for (const [path, entries] of byFile()) {
      try {
        await writeDay(path, entries)
        for (const entry of entries) waiting.remove(entry)
      } catch (error) {
        fault ??= error
        if (isDiskFull(error)) break
      }
    }
    if (fault !== null && !failing) log.warn({ err: fault }, 'cannot write metrics history; trying again')
    failing = fault !== null
    if (failing) flushSoon()
  }

  function byFile(): Map<string, WaitingSample[]> {
    const files = new Map<string, WaitingSample[]>()
    for (const entry of waiting) {
      const path = pathOf(entry.hostId, dayFileOf(entry.at))
      const entries = files.get(path)
      if (entries) entries.push(entry)
      else files.set(path, [entry])
    }
    return files
  }

  async function writeDay(path: string, entries: readonly WaitingSample[]): Promise<void> {
    if (full.has(path)) return
    const lines = entries.map(({ line }) => line)
    if (await appendLines(path, lines)) return
    full.add(path)
    log.warn({ path }, "a host's metrics history of this day is full; further samples are not kept")
  }

  async function hostsIn(): Promise<string[]> {
    return (await namesIn(directory)).filter((name) => /^\d+$/.test(name))
  }

  async function daysOf(hostId: number | string): Promise<string[]> {
    const names = await namesIn(join(directory, String(hostId)))
    return names.filter((file) => endOfDay(file) !== null).sort()
  }

  return {
    append(hostId, metrics) {
      waiting.add(hostId, metrics)
      flushSoon()
    },
    async *read(hostId, from, to) {
      const inRange = (at: number) => at >= from && at <= to
      // Taken before any file is opened, so that a line written meanwhile is seen twice, never missed.
      const unwritten = new Set(waiting.of(hostId, from, to).map(({ line }) => line))
      for (const line of unwritten) {
        const sample = decodeSample(line)
        if (sample) yield sample.metrics
      }
      const [first, last] = [dayFileOf(from), dayFileOf(to)]
      for (const file of await daysOf(hostId)) {
        if (file < first || file > last) continue
        for await (const line of linesOf(pathOf(hostId, file))) {
          if (unwritten.has(line)) continue
          const sample = decodeSample(line)
          if (sample && inRange(sample.at)) yield sample.metrics
        }
      }
    },
    async forget(hostId) {
      waiting.forget(hostId)
      // After a write in progress, which would recreate the directory.
      await disk
        .run(() => rm(pathOf(hostId), { recursive: true, force: true }))
        .catch((error: unknown) =>
          log.warn({ err: error, hostId }, 'could not remove the metrics history of a deleted host'),
        )
    },
    async sweep(age) {
      full.clear()
      for (const host of await hostsIn()) {
        const days = await daysOf(host)
        const old = days.filter((file) => isOver(file, age))
        for (const file of old) await rm(join(directory, host, file), { force: true })
        // Fails if a sample has arrived meanwhile; then the directory must stay.
        if (old.length === days.length) await rmdir(join(directory, host)).catch(() => undefined)
      }
    },
    async close() {
      if (timer) clearTimeout(timer)
      await flush()
      if (timer) clearTimeout(timer)
      if (waiting.size > 0) log.warn({ dropped: waiting.size }, 'the last metrics could not be written')
    },
  }
}

/** A clock that was behind may have written to the file at any hour of its day. */
function isOver(file: string, age: Age): boolean {
  const end = endOfDay(file)
  return end !== null && age(end - day, end) >= keptFor
}

const namesIn = async (path: string) => (await readdir(path).catch(nullWhereMissing)) ?? []

const openFile = promisify(open)
const writeFile = promisify(write)

/** Limit for one host's day: 450,000 samples, so that one agent cannot fill the disk of all. */
const largestFile = 64 * 1024 * 1024
/** Twice the largest report (contract §1: bodies of 2 MiB). Longer lines are dropped, to bound memory. */
const longestLine = 4 * 1024 * 1024
const dayFileName = /^(\d{4}-\d\d-\d\d)\.jsonl$/

export function dayFileOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 10)}.jsonl`
}

/** End of the day of a file, in milliseconds since the epoch; null for a foreign file. */
export function endOfDay(file: string): number | null {
  const date = dayFileName.exec(file)?.[1]
  return date === undefined ? null : Date.parse(date) + day
}

/**
 * Begins each line with a line feed instead of ending with one, so that a torn line cannot swallow the next.
 * Returns false, with nothing written, if the file has reached its limit.
 * Only calls that may wait for the disk use libuv's threads. With a file for each of thousands of hosts,
 * switching threads would be most of the cost.
 */
export async function appendLines(path: string, lines: readonly string[]): Promise<boolean> {
  const descriptor = await openToAppend(path)
  try {
    if (fstatSync(descriptor).size >= largestFile) return false
    let rest = Buffer.from(lines.map((line) => `\n${line}`).join(''))
    while (rest.length > 0) rest = rest.subarray((await writeFile(descriptor, rest)).bytesWritten)
    return true
  } finally {
    closeSync(descriptor)
  }
}

async function openToAppend(path: string): Promise<number> {
  try {
    return await openFile(path, 'a', 0o600)
  } catch (error) {
    if (!isMissing(error)) throw error
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    return openFile(path, 'a', 0o600)
  }
}

/**
 * A missing file is empty. Splits here, because readline also breaks at characters that JSON does not escape.
 */
export async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  try {
    for await (const piece of createReadStream(path, { encoding: 'utf8' })) {
      const [end = '', ...begun] = String(piece).split('\n')
      const lines = [rest + end, ...begun]
      rest = lines.pop() ?? ''
      if (rest.length > longestLine) rest = ''
      yield* lines
    }
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  yield rest
}
