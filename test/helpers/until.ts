import { setTimeout as delay } from 'node:timers/promises'
import { nullWhereMissing } from '../../src/disk/durable.ts'
import { patience as longest } from './patience.ts'

/**
 * Polls until a condition without an event holds; a file that it reads may be missing at first. Rejects after `patience`
 * milliseconds.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  patience = longest,
): Promise<void> {
  const began = performance.now()
  while (!(await (async () => holds())().catch(nullWhereMissing))) {
    if (performance.now() - began > patience) throw new Error(`${what}: not within ${patience} ms`)
    await delay(25)
  }
}
