import type { Tone } from './screen.ts'

const tones: Readonly<Record<string, Tone>> = {
  FAILED: 'red',
  TIMEOUT: 'red',
  LOST: 'red',
  UNREACHABLE: 'red',
  OFFLINE: 'red',
  REFUSED: 'red',
  WARNING: 'yellow',
  CANCELLED: 'yellow',
  SKIPPED: 'yellow',
  SUCCESS: 'green',
  ONLINE: 'green',
}

/** The colour of a state, of a host, a task, a result or what the audit log tells; undefined of one that is on its way. */
export const toneOf = (state: string): Tone | undefined => tones[state]
