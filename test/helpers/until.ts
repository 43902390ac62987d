import { setTimeout as delay } from 'node:timers/promises'

/** Looks until something holds that no event tells of; rejects after `patience` milliseconds. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  patience = 60_000,
): Promise<void> {
  const began = performance.now()
  while (!(await holds())) {
    if (performance.now() - began > patience) throw new Error(`${what}: not within ${patience} ms`)
    await delay(100)
  }
}
