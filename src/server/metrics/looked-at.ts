import { Gauge, type Registry } from 'prom-client'
import { RsmError } from '../../core/errors.ts'

/** What a gauge shows at a scrape: nothing where it is unknown. */
type Value = number | null
type Series = Readonly<Record<string, number>>

/** A store that is away must not keep a scrape from telling so. */
async function ifReached<T>(look: () => T | Promise<T>): Promise<T | null> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof RsmError && error.code === 'unavailable') return null
    throw error
  }
}

/** Gauges of a registry that are looked at when a scrape asks for them. */
export function lookedAt(registry: Registry) {
  const registers = [registry]
  return {
    gauge: (name: string, help: string, look: () => Value | Promise<Value>) =>
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          const value = await ifReached(look)
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
          const all = await ifReached(look)
          if (all === null) this.reset()
          for (const [series, value] of Object.entries(all ?? {})) this.set({ [label]: series }, value)
        },
      }),
  }
}
