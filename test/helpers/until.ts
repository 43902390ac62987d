import { setTimeout as delay } from 'node:timers/promises'
import { patience as longest } from './patience.ts'

/** Polls until a condition without an event holds; rejects after `patience` milliseconds. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  patience = longest,
): Promise<void> {
  const began = performance.now()
  while (!(await holds())) {
    if (performance.now() - began > patience) throw new Error(`${what}: not within ${patience} ms`)
    await delay(25)
  }
}
