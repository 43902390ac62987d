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

/** Whether line drawing and `…` may be used: ASCII in locales without UTF-8 (contract §9). */
export function isUtf8(env: NodeJS.ProcessEnv = process.env): boolean {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  return /utf-?8/i.test(locale)
}

/** Replaces the ellipsis of text cut elsewhere if this terminal cannot show it. */
export function withOwnMark(text: string): string {
  return isUtf8() ? text : text.replace(/\u2026$/, '...')
}

/** An empty NO_COLOR counts as absent (no-color.org). */
export const isColorless = () => (process.env['NO_COLOR'] ?? '') !== ''

/** Colours text for a terminal that wants colour. */
export function paint(tone: Tone, text: string, stream: { isTTY?: boolean } = process.stdout): string {
  const plain = stream.isTTY !== true || isColorless() || process.env['TERM'] === 'dumb'
  // Without validation, because Node would check stdout and treat an empty NO_COLOR as set.
  return plain ? text : styleText(tone, text, { validateStream: false })
}

/** Width of a terminal; undefined for other streams and if unknown. */
export function columnsOf(stream: { isTTY?: boolean; columns?: number }): number | undefined {
  return stream.isTTY === true ? stream.columns || undefined : undefined
}

/** Whether a person watches stderr: spinners, progress and hints are for people only (contract §9). */
export function isWatched(): boolean {
  return process.stderr.isTTY && (process.env['CI'] ?? '') === ''
}

/** Colour for the state of a host, task, result or audit entry; undefined for states in progress. */
export const toneOf = (state: string): Tone | undefined => stateTones[state]

/** Shows a spinner on a terminal until the work ends or fails; writes nothing elsewhere. `say` changes its text. */
export async function withSpinner<T>(
  text: string,
  work: (say: (text: string) => void) => Promise<T>,
): Promise<T> {
  // ora clears lines endlessly if the terminal width is unknown.
  if (!isWatched() || columnsOf(process.stderr) === undefined) return work(() => {})
  const { default: ora } = await import('ora')
  // Ctrl-C is left to the command, which knows what to cancel.
  const frames = isUtf8() ? {} : { spinner: 'line' as const }
  const spinner = ora({ text, stream: process.stderr, discardStdin: false, ...frames }).start()
  try {
    return await work((now) => {
      spinner.text = now
    })
  } finally {
    spinner.stop()
  }
}
