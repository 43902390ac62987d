import type { Metrics } from '../../core/hosts/host.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import { keptFor } from './ports/presence.ts'

export interface WaitingSample {
  readonly hostId: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly line: string
}

/** Milliseconds by which an agent's clock may be ahead and still count. */
const tolerance = 60_000

/** Samples that are not written yet, oldest first; beyond a limit the oldest are dropped. */
export class WaitingSamples {
  /** Count since this was last set to 0. */
  dropped = 0
  #characters = 0
  readonly #waiting = new Set<WaitingSample>()
  readonly #clock: Clock
  readonly #most: number

  /** `most`: maximum characters of all pending samples. */
  constructor(clock: Clock, most: number) {
    this.#clock = clock
    this.#most = most
  }

  get size(): number {
    return this.#waiting.size
  }

  [Symbol.iterator](): Iterator<WaitingSample> {
    return this.#waiting.values()
  }

  /** Adds a sample at the time that its agent reports, or now if that is implausible (contract §3). */
  add(hostId: number, metrics: Metrics): void {
    const now = this.#clock.now()
    const reported = Date.parse(metrics.timestamp)
    const at = reported <= now + tolerance && reported >= now - keptFor ? reported : now
    const entry = { hostId, at, line: encodeSample(at, metrics) }
    this.#waiting.add(entry)
    this.#characters += entry.line.length
    for (const oldest of this.#waiting) {
      if (this.#characters <= this.#most) break
      this.remove(oldest)
      this.dropped += 1
    }
  }

  first(most: number): WaitingSample[] {
    const found: WaitingSample[] = []
    for (const entry of this.#waiting) {
      if (found.length === most) break
      found.push(entry)
    }
    return found
  }

  remove(entry: WaitingSample): void {
    if (this.#waiting.delete(entry)) this.#characters -= entry.line.length
  }

  forget(hostId: number): void {
    for (const entry of this.#waiting) if (entry.hostId === hostId) this.remove(entry)
  }

  /** Samples of a host from `from` to `to`, both inclusive. */
  of(hostId: number, from: number, to: number): WaitingSample[] {
    return [...this.#waiting].filter((entry) => entry.hostId === hostId && entry.at >= from && entry.at <= to)
  }
}

/** Metrics of a host at a time, in milliseconds since the epoch. */
export interface Sample {
  readonly at: number
  readonly metrics: Metrics
}

export type DiskRow = [mountPoint: string, totalGB: number, usedGB: number, usagePercent: number]

/** Contents of a line: numbers, the first of which is the time, and disks. */
export interface SampleRow {
  readonly numbers: number[]
  readonly disks: DiskRow[]
}

const disksAt = 12
/** Maximum characters for the disks of one sample: 256 of them with usual names. */
const mostOfDisks = 16 * 1024

/**
 * One sample as a compact JSON array of about 100 bytes and 30 for each disk:
 * `[time, cpu %, load 1m, 5m, 15m, memory total MB, used MB, available MB, %, rx B/s, tx B/s, connections,
 * [[mount point, total GB, used GB, %], …]]`, `time` in milliseconds since the epoch. It holds no line feed.
 */
export function encodeSample(at: number, { cpu, memory, disk, network }: Metrics): string {
  return JSON.stringify([
    at,
    cpu.usagePercent,
    cpu.loadAvg1m,
    cpu.loadAvg5m,
    cpu.loadAvg15m,
    memory.totalMB,
    memory.usedMB,
    memory.availableMB,
    memory.usagePercent,
    network.rxBytesPerSec,
    network.txBytesPerSec,
    network.connections,
    rowsOf(disk),
  ])
}

/** The first disks, as far as they fit. */
function rowsOf(disk: Metrics['disk']) {
  const rows = disk.map(
    ({ mountPoint, totalGB, usedGB, usagePercent }): DiskRow => [mountPoint, totalGB, usedGB, usagePercent],
  )
  let left = mostOfDisks
  return rows.filter((row) => {
    left -= JSON.stringify(row).length
    return left >= 0
  })
}

/** Null for an invalid line, torn by a crash or a full disk. */
export function decodeSample(line: string): Sample | null {
  const row = parseSample(line)
  return row && sampleOf(row)
}

/** Like `decodeSample`, but as in the line. */
export function parseSample(line: string): SampleRow | null {
  const row = parse(line)
  if (!Array.isArray(row) || row.length !== disksAt + 1) return null
  const numbers: unknown[] = row.slice(0, disksAt)
  const disks: unknown = row[disksAt]
  return areNumbers(numbers) && Array.isArray(disks) ? { numbers, disks: disks.filter(isDisk) } : null
}

export function sampleOf({ numbers, disks }: SampleRow): Sample {
  const [at = 0, cpu = 0, load1 = 0, load5 = 0, load15 = 0, ...rest] = numbers
  const [totalMB = 0, usedMB = 0, availableMB = 0, memory = 0, rx = 0, tx = 0, connections = 0] = rest
  return {
    at,
    metrics: {
      timestamp: isoTime(at),
      cpu: { usagePercent: cpu, loadAvg1m: load1, loadAvg5m: load5, loadAvg15m: load15 },
      memory: { totalMB, usedMB, availableMB, usagePercent: memory },
      disk: disks.map(([mountPoint, totalGB, usedGB, usagePercent]) => ({
        mountPoint,
        totalGB,
        usedGB,
        usagePercent,
      })),
      network: { rxBytesPerSec: rx, txBytesPerSec: tx, connections },
    },
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

const areNumbers = (values: unknown[]): values is number[] => values.every(Number.isFinite)

function isDisk(row: unknown): row is DiskRow {
  return Array.isArray(row) && typeof row[0] === 'string' && row.length === 4 && areNumbers(row.slice(1))
}
