import { readFileSync, type StatsFs } from 'node:fs'
import { appendFile, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { RsmError } from '../../core/errors.ts'
import { leastFreePercent } from '../../core/hosts/agent-state.ts'
import type { AgentStatus, Metrics } from '../../core/hosts/host.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { disksMounted, Inquiry } from '../processes/file-systems.ts'

const maxDisks = 64
/** Threads that disks which do not answer may block. */
const maxBlocked = 2
/** Seconds of metrics kept while the server is unavailable (contract §6). */
const keptSeconds = 3600

type Space = Pick<StatsFs, 'blocks' | 'bfree' | 'bavail' | 'bsize'> &
  Partial<Pick<StatsFs, 'files' | 'ffree'>>

interface Counters {
  at: number
  busy: number
  total: number
  received: number
  sent: number
}

interface Health {
  readonly status: AgentStatus
  readonly reason: string | null
}

/**
 * Measures the host from /proc; rates cover the time since the last call, the first since `meter` was called.
 * `question` and its `patience` in milliseconds default to Node's statfs and the usual timeout.
 */
export function meter(
  clock: Clock,
  log: Log,
  question: (path: string) => Promise<Space> = statfs,
  patience?: number,
): () => Promise<Metrics> {
  const space = new Inquiry(question, maxBlocked, patience)
  const warned = new Set<string>()
  const silent = (mountPoint: string, how: string) => {
    if (warned.has(mountPoint)) return
    warned.add(mountPoint)
    log('WARN', `a disk ${how}; metrics omit it`, { mountPoint })
  }
  let before = countersNow(clock)
  return async () => {
    const counters = countersNow(clock)
    const seconds = Math.max(0.001, (counters.at - before.at) / 1000)
    const rate = (now: number, then: number) => Math.max(0, Math.round((now - then) / seconds))
    const [one = 0, five = 0, fifteen = 0] = readFileSync('/proc/loadavg', 'utf8')
      .split(' ')
      .slice(0, 3)
      .map(Number)
    const sample: Metrics = {
      timestamp: new Date(clock.now()).toISOString(),
      cpu: {
        usagePercent: percent(counters.busy - before.busy, counters.total - before.total),
        loadAvg1m: one,
        loadAvg5m: five,
        loadAvg15m: fifteen,
      },
      memory: memory(),
      disk: await disks(space, silent),
      network: {
        rxBytesPerSec: rate(counters.received, before.received),
        txBytesPerSec: rate(counters.sent, before.sent),
        connections: connections(),
      },
    }
    before = counters
    return sample
  }
}

function countersNow(clock: Clock): Counters {
  const ticks = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '')
    .trim()
    .split(/\s+/)
    .slice(1, 9)
    .map(Number)
  const total = ticks.reduce((sum, tick) => sum + tick, 0)
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0)
  let [received, sent] = [0, 0]
  for (const line of readFileSync('/proc/net/dev', 'utf8').split('\n').slice(2)) {
    const [name = '', figures = ''] = line.split(':')
    if (!figures || name.trim() === 'lo') continue
    const columns = figures.trim().split(/\s+/).map(Number)
    received += columns[0] ?? 0
    sent += columns[8] ?? 0
  }
  return { at: clock.monotonic(), busy: total - idle, total, received, sent }
}

function memory(): Metrics['memory'] {
  const text = readFileSync('/proc/meminfo', 'utf8')
  const megabytes = (name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) / 1024)
  const [totalMB, availableMB] = [megabytes('MemTotal'), megabytes('MemAvailable')]
  const usedMB = totalMB - availableMB
  return { totalMB, usedMB, availableMB, usagePercent: percent(usedMB, totalMB) }
}

/** One row per device, for its first mount. Omits read-only devices and those that do not answer. */
async function disks(
  space: Inquiry<Space>,
  silent: (mountPoint: string, how: string) => void,
): Promise<Metrics['disk']> {
  const seen = new Set<string>()
  const rows: Metrics['disk'] = []
  for (const { device, mountPoint, type, isReadOnly } of disksMounted()) {
    if (seen.has(device) || isReadOnly) continue
    if (rows.length >= maxDisks) break
    const figures = await space.ask(mountPoint).catch((error: unknown) => {
      if (!(error instanceof RsmError)) return null
      silent(mountPoint, error.message)
      // Its other mounts would not answer either.
      seen.add(device)
      return null
    })
    if (!figures || figures.blocks === 0) continue
    seen.add(device)
    const [used, usable] = [figures.blocks - figures.bfree, figures.blocks - figures.bfree + figures.bavail]
    const inodes = inodesUsed(figures, type)
    const gigabytes = (blocks: number) => Math.round((blocks * figures.bsize) / 1024 ** 2 / 10.24) / 100
    rows.push({
      mountPoint,
      totalGB: gigabytes(figures.blocks),
      usedGB: gigabytes(used),
      usagePercent: percent(used, usable),
      ...(inodes === null ? {} : { inodesPercent: inodes }),
    })
  }
  return rows
}

/** Null if the file system allocates inodes as needed (btrfs reports 0) or its numbers are invented (FUSE). */
export const inodesUsed = ({ files = 0, ffree = 0 }: Partial<Space>, type: string): number | null =>
  files > 0 && !type.startsWith('fuse') ? percent(files - ffree, files) : null

function connections(): number {
  let established = 0
  for (const path of ['/proc/net/tcp', '/proc/net/tcp6']) {
    try {
      for (const line of readFileSync(path, 'latin1').split('\n'))
        if (/^\s*\d+: \S+ \S+ 01 /.test(line)) established += 1
    } catch {
      // No IPv6 on this host.
    }
  }
  return established
}

function percent(part: number, whole: number): number {
  return whole > 0 ? Math.round(Math.min(1, Math.max(0, part / whole)) * 1000) / 10 : 0
}

/** First reason why the data directory may lack room for script output; null if there is none. */
async function lackOfRoom(dataDir: string): Promise<string | null> {
  try {
    const { bavail, blocks, files, ffree } = await statfs(dataDir)
    const percent = (bavail / blocks) * 100
    if (percent < leastFreePercent) return `${Math.floor(percent)} % free on the disk of ${dataDir}`
    return files > 0 && ffree === 0 ? `no inodes are free on the disk of ${dataDir}` : null
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    return `the data directory ${dataDir} cannot be read${code}`
  }
}

/**
 * Health of an agent: by the disk of its data directory, and by disks that became read-only since first seen,
 * for example after an error. Images are read-only from the start.
 */
export function healthOf(dataDir: string, mounted = disksMounted): () => Promise<Health> {
  const wasReadOnly = new Map<string, boolean>()
  return async () => {
    const reasons = [await lackOfRoom(dataDir)]
    const disks = mounted()
    const devices = new Set(disks.map(({ device }) => device))
    for (const device of wasReadOnly.keys()) if (!devices.has(device)) wasReadOnly.delete(device)
    for (const { device, mountPoint, isReadOnly } of disks) {
      if (!wasReadOnly.has(device)) wasReadOnly.set(device, isReadOnly)
      else if (isReadOnly && devices.delete(device) && wasReadOnly.get(device) === false)
        reasons.push(`${mountPoint} has become read-only`)
    }
    const reason = reasons.filter((each) => each !== null).join(', ')
    return reason === '' ? { status: 'HEALTHY', reason: null } : { status: 'DEGRADED', reason }
  }
}

/** Unsent metrics, oldest first; on disk, so that a restart of the agent keeps them. */
export class MetricsBuffer {
  readonly #path: string
  readonly #samples: Metrics[] = []

  private constructor(path: string) {
    this.#path = path
  }

  static async open(path: string): Promise<MetricsBuffer> {
    const buffer = new MetricsBuffer(path)
    const text = await readFile(path, 'utf8').catch(() => '')
    for (const line of text.split('\n')) {
      try {
        if (line) buffer.#samples.push(JSON.parse(line) as Metrics)
      } catch {
        // The last line of a killed agent was cut off: one sample is lost.
      }
    }
    return buffer
  }

  get size(): number {
    return this.#samples.length
  }

  /** Bounded by number of samples, because the clock may step; `interval` is the seconds between samples. */
  async push(sample: Metrics, interval: number): Promise<void> {
    this.#samples.push(sample)
    const maxSamples = Math.ceil(keptSeconds / interval)
    if (this.#samples.length <= maxSamples)
      return appendFile(this.#path, `${JSON.stringify(sample)}\n`, { mode: 0o600 })
    this.#samples.splice(0, this.#samples.length - maxSamples)
    // Rewritten only occasionally: the file may exceed the bound by an eighth.
    if (this.#overrun++ % Math.ceil(maxSamples / 8) === 0) return this.#rewrite()
    return appendFile(this.#path, `${JSON.stringify(sample)}\n`, { mode: 0o600 })
  }
  #overrun = 0

  /** Sends all samples, oldest first; a failure stops it and keeps the sample. */
  async drain(send: (sample: Metrics) => Promise<void>): Promise<void> {
    let sent = 0
    try {
      for (let next = this.#samples[0]; next; next = this.#samples[0]) {
        await send(next)
        this.#samples.shift()
        sent += 1
      }
    } finally {
      if (this.#samples.length === 0) await rm(this.#path, { force: true })
      else if (sent > 0) await this.#rewrite()
    }
  }

  #rewrite(): Promise<void> {
    return writeFile(this.#path, this.#samples.map((sample) => `${JSON.stringify(sample)}\n`).join(''), {
      mode: 0o600,
    })
  }
}
