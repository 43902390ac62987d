const units = [
  { seconds: 86_400, word: 'days' },
  { seconds: 3600, word: 'h' },
  { seconds: 60, word: 'min' },
] as const

/** A time span in the largest unit that gives at least 2: `94 s`, `5 min`, `3 h`, `2 days`. */
export function span(seconds: number): string {
  const unit = units.find((each) => seconds >= 2 * each.seconds)
  return unit ? `${Math.floor(seconds / unit.seconds)} ${unit.word}` : `${Math.floor(seconds)} s`
}

/** A time span in the largest unit that divides it and gives at least 2: `15 s`, `2 min`, `150 s`. */
export function exactSpan(seconds: number): string {
  const unit = units.find((each) => seconds >= 2 * each.seconds && seconds % each.seconds === 0)
  return unit ? `${seconds / unit.seconds} ${unit.word}` : `${seconds} s`
}

/** `about 5 min ahead`; `offset` in seconds. */
export function clockWords(offset: number): string {
  return `about ${span(Math.abs(offset))} ${offset > 0 ? 'ahead' : 'behind'}`
}
