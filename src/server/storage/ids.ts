import { randomBytes } from 'node:crypto'

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const timeDigits = 10
const idPattern = /^[0-9A-HJKMNP-TV-Z]{26}$/
/** Servers of one process share it, as in tests: ids of each still ascend, and may skip a millisecond. */
let lastTime = 0

/**
 * Task or session id: time-sortable, URL- and file-safe (contract §1). Ten digits of time, then 80 random
 * bits, in Crockford's base 32. Time never repeats or goes back within a process, so ids ascend in the order
 * of their creation.
 */
export function opaqueId(now: number): string {
  lastTime = Math.max(now, lastTime + 1)
  let text = firstDigits(lastTime)
  for (const byte of randomBytes(16)) text += alphabet[byte % 32] ?? '0'
  return text
}

/** Prefix of the ids created in one millisecond. */
export function firstDigits(time: number): string {
  let text = ''
  for (let digit = 0, left = time; digit < timeDigits; digit++) {
    text = (alphabet[left % 32] ?? '0') + text
    left = Math.floor(left / 32)
  }
  return text
}

/** Makes new ids ascend from this one; the clock may have been ahead when it was created (contract §1). */
export function ascendFrom(id: string): void {
  lastTime = Math.max(lastTime, timeOfId(id) ?? 0)
}

/** Creation time of an id in milliseconds since 1970; null for an invalid id. */
export function timeOfId(id: string): number | null {
  if (!idPattern.test(id)) return null
  return Array.from(id.slice(0, timeDigits)).reduce((time, digit) => time * 32 + alphabet.indexOf(digit), 0)
}
