const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Seconds of `90`, `90s`, `5m`, `1h30m` (contract §9); null if the text is not a duration. */
export function durationSeconds(text: string): number | null {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([smhd])/gy)]
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== text) return null
  return parts.reduce((sum, part) => sum + Number(part[1]) * (units[part[2] ?? ''] ?? 1), 0)
}

/** `90s`, `5m`: seconds in the largest unit that divides them. */
export function durationText(seconds: number): string {
  const [unit, size] = Object.entries(units).findLast(([, each]) => seconds > 0 && seconds % each === 0) ?? [
    's',
    1,
  ]
  return `${seconds / size}${unit}`
}

const spanUnits = [
  { seconds: 86_400, word: 'days' },
  { seconds: 3600, word: 'h' },
  { seconds: 60, word: 'min' },
] as const

/** A time span in the largest unit that gives at least 2: `94 s`, `5 min`, `3 h`, `2 days`. */
export function span(seconds: number): string {
  const unit = spanUnits.find((each) => seconds >= 2 * each.seconds)
  return unit ? `${Math.floor(seconds / unit.seconds)} ${unit.word}` : `${Math.floor(seconds)} s`
}

/** A time span in the largest unit that divides it and gives at least 2: `15 s`, `2 min`, `150 s`. */
export function exactSpan(seconds: number): string {
  const unit = spanUnits.find((each) => seconds >= 2 * each.seconds && seconds % each.seconds === 0)
  return unit ? `${seconds / unit.seconds} ${unit.word}` : `${seconds} s`
}

/** `about 5 min ahead`; `offset` in seconds. */
export function clockWords(offset: number): string {
  return `about ${span(Math.abs(offset))} ${offset > 0 ? 'ahead' : 'behind'}`
}
