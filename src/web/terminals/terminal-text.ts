interface Attachment {
  readonly isBack: boolean
  /** Characters. */
  readonly omitted: number
  readonly watchers: string | null
}

/** Complete message about an attachment, so that no part hides another. */
export function attachedText({ isBack, omitted, watchers }: Attachment): string {
  const sentences: string[] = []
  if (isBack) sentences.push(omitted > 0 ? 'Reattached' : 'Reattached; nothing was lost')
  if (omitted > 0) sentences.push(`${omitted} characters of earlier output are no longer kept`)
  if (watchers !== null) sentences.push(watchers)
  return sentences.join('. ')
}

/** Terminal keys that phone keyboards lack. */
export const screenKeys = ['Esc', 'Tab', '←', '↑', '↓', '→'] as const
export type ScreenKey = (typeof screenKeys)[number]

/** Last characters of the cursor keys' sequences (xterm, PC-style function keys). */
const cursors: Partial<Record<ScreenKey, string>> = { '↑': 'A', '↓': 'B', '→': 'C', '←': 'D' }

export interface KeyModes {
  /** Whether the program asked for application cursor keys (DECCKM). */
  isApplication: boolean
  isCtrl: boolean
}

export function sequenceOf(key: ScreenKey, { isApplication, isCtrl }: KeyModes): string {
  const cursor = cursors[key]
  if (cursor === undefined) return key === 'Esc' ? '\u001b' : '\t'
  if (isCtrl) return `\u001b[1;5${cursor}`
  return `\u001b${isApplication ? 'O' : '['}${cursor}`
}

/** Character with Ctrl held, as `\u0003` for c; unchanged if there is none. */
export function withCtrl(character: string): string {
  if (character === ' ') return '\0'
  return /^[@-_a-z]$/.test(character) ? String.fromCharCode(character.charCodeAt(0) & 0x1f) : character
}
