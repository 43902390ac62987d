import type { Tone } from './screen.ts'

const tones: Readonly<Record<string, Tone>> = {
  FAILED: 'red',
  TIMEOUT: 'red',
  LOST: 'red',
  UNREACHABLE: 'red',
  OFFLINE: 'red',
  'NO LINK': 'red',
  REFUSED: 'red',
  WARNING: 'yellow',
  CANCELLED: 'yellow',
  SKIPPED: 'yellow',
  SUCCESS: 'green',
  ONLINE: 'green',
}

/** The colour of the state of a host, task, result or audit entry; undefined for states that are under way. */
export const toneOf = (state: string): Tone | undefined => tones[state]
