import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import type { Metrics } from '../../core/hosts/host.ts'

/** Seconds of metrics kept while the server is unavailable (contract §6). */
const keptSeconds = 3600

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
