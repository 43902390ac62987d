import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds. */
const pause = 1_000

/**
 * What a busy server does not answer is asked again, as clients and agents do: `ask` may be repeated. Rejects with the last fault
 * after `patience` milliseconds.
 */
export async function patiently<T>(ask: () => Promise<T>, patience = 120_000): Promise<T> {
  const began = performance.now()
  for (;;)
    try {
      return await ask()
    } catch (error) {
      if (performance.now() - began > patience) throw error
      await delay(pause)
    }
}
