const zero = 48
const nine = 57

const isDigit = (code: number): boolean => code >= zero && code <= nine

/** ASCII upper case to lower case; host names hold nothing else (contract §1). */
const lower = (code: number): number => (code >= 65 && code <= 90 ? code + 32 : code)

/** The end of the run of digits that begins at `start`. */
function runEnd(text: string, start: number): number {
  let end = start
  while (isDigit(text.charCodeAt(end))) end++
  return end
}

function skipZeros(text: string, start: number, end: number): number {
  let at = start
  while (at < end && text.charCodeAt(at) === zero) at++
  return at
}

/**
 * Natural order of names (contract §8): `web2` before `web10`, case ignored. Total: names that differ only in padding
 * or case have a fixed order too. Compares codes in place, so that 10,000 names sort in a few milliseconds.
 */
export function compareNatural(a: string, b: string): number {
  let i = 0
  let j = 0
  let padding = 0
  while (i < a.length && j < b.length) {
    if (isDigit(a.charCodeAt(i)) && isDigit(b.charCodeAt(j))) {
      const endA = runEnd(a, i)
      const endB = runEnd(b, j)
      const startA = skipZeros(a, i, endA)
      const startB = skipZeros(b, j, endB)
      const digits = endA - startA
      if (digits !== endB - startB) return digits - (endB - startB)
      for (let k = 0; k < digits; k++) {
        const step = a.charCodeAt(startA + k) - b.charCodeAt(startB + k)
        if (step !== 0) return step
      }
      if (padding === 0) padding = endA - i - (endB - j)
      i = endA
      j = endB
    } else {
      const step = lower(a.charCodeAt(i)) - lower(b.charCodeAt(j))
      if (step !== 0) return step
      i++
      j++
    }
  }
  const rest = a.length - i - (b.length - j)
  if (rest !== 0) return rest
  if (padding !== 0) return padding
  if (a === b) return 0
  return a < b ? -1 : 1
}
