import { setTimeout as delay } from 'node:timers/promises'
import { Gauge, type Registry } from 'prom-client'
import { RsmError } from '../../core/errors.ts'

/** What a gauge shows at a scrape: nothing where it is unknown. */
type Value = number | null
type Series = Readonly<Record<string, number>>

/** Milliseconds to wait for a gauge: half of Prometheus' default `scrape_timeout`. */
const longestLook = 5_000

/** Answers null if the store is away or slow, so that the scrape can report that. */
async function ifReached<T>(look: () => T | Promise<T>, patience: number): Promise<T | null> {
  const looked = new AbortController()
  try {
    return await Promise.race([look(), delay(patience, null, { signal: looked.signal })])
  } catch (error) {
    if (error instanceof RsmError && error.code === 'unavailable') return null
    throw error
  } finally {
    looked.abort()
  }
}

/** Gauges of a registry that are looked at when a scrape asks for them. */
export function lookedAt(registry: Registry, patience = longestLook) {
  const registers = [registry]
  return {
    gauge: (name: string, help: string, look: () => Value | Promise<Value>) =>
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          const value = await ifReached(look, patience)
          if (value === null) this.remove()
          else this.set(value)
        },
      }),
    /** One series for each value of the label; none where it is unknown. */
    gauges: (name: string, help: string, label: string, look: () => Series | null | Promise<Series | null>) =>
      new Gauge({
        name,
        help,
        registers,
        labelNames: [label],
        async collect() {
          const all = await ifReached(look, patience)
          if (all === null) this.reset()
          for (const [series, value] of Object.entries(all ?? {})) this.set({ [label]: series }, value)
        },
      }),
  }
}
