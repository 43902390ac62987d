import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds. */
const pause = 1_000

/**
 * Retries while a busy server does not respond, as clients and agents do, so `ask` must be repeatable. Rejects with the last
 * error after `patience` milliseconds.
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
