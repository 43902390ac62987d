import { styleText } from 'node:util'

export type Tone = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

const stateTones: Readonly<Record<string, Tone>> = {
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

/** Whether line drawing and `…` may be used: ASCII where the locale is not UTF-8 (contract §9). */
export function isUtf8(env: NodeJS.ProcessEnv = process.env): boolean {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  return /utf-?8/i.test(locale)
}

/** A text that was cut elsewhere, with a mark that may be used here. */
export function withOwnMark(text: string): string {
  return isUtf8() ? text : text.replace(/\u2026$/, '...')
}

/** An empty NO_COLOR counts as absent (no-color.org). */
export const isColorless = () => (process.env['NO_COLOR'] ?? '') !== ''

/** Colours a text for a stream that is a terminal and wants colour. */
export function paint(tone: Tone, text: string, stream: { isTTY?: boolean } = process.stdout): string {
  const plain = stream.isTTY !== true || isColorless() || process.env['TERM'] === 'dumb'
  // Node would look at stdout, and take an empty NO_COLOR as set.
  return plain ? text : styleText(tone, text, { validateStream: false })
}

/** How wide a stream is for people; undefined for programs, and for a terminal that does not tell. */
export function columnsOf(stream: { isTTY?: boolean; columns?: number }): number | undefined {
  return stream.isTTY === true ? stream.columns || undefined : undefined
}

/** Whether people watch stderr: spinners, progress and hints are for them only (contract §9). */
export function isWatched(): boolean {
  return process.stderr.isTTY && (process.env['CI'] ?? '') === ''
}

/** The colour of the state of a host, task, result or audit entry; undefined for states that are under way. */
export const toneOf = (state: string): Tone | undefined => stateTones[state]
