import { invalid, type RsmError } from '../errors.ts'
import { shortened } from '../text/pieces.ts'

/** Characters of a selector that a message quotes. */
const longestShown = 100

/** Position in a selector, and the field of the request that holds it. */
export interface Place {
  readonly field: string
  readonly text: string
  /** From 0; messages count from 1. */
  readonly at: number
}

export function syntaxError(message: string, place: Place): RsmError {
  return invalid([
    {
      field: place.field,
      message: `${message} (at character ${place.at + 1} of "${shortened(place.text, longestShown)}")`,
    },
  ])
}

const anyText = '*'.charCodeAt(0)
const anyCharacter = '?'.charCodeAt(0)

export function hasWildcard(text: string): boolean {
  return text.includes('*') || text.includes('?')
}

/**
 * Whether `text` matches `mask`, where `*` stands for any text and `?` for one character. Never worse than mask ×
 * text: a regular expression with many stars would let one selector block the server. `spend` gets the characters
 * compared, because many masks over many texts would block it too.
 */
export function matchesWildcard(mask: string, text: string, spend: (characters: number) => void): boolean {
  let steps = 0
  let m = 0
  let t = 0
  let star = -1
  let resume = 0
  while (t < text.length) {
    steps++
    const sign = mask.charCodeAt(m)
    if (sign === anyText) {
      star = m++
      resume = t
    } else if (sign === anyCharacter || sign === text.charCodeAt(t)) {
      m++
      t++
    } else if (star >= 0) {
      m = star + 1
      t = ++resume
    } else break
  }
  spend(steps)
  if (t < text.length) return false
  while (mask.charCodeAt(m) === anyText) m++
  return m === mask.length
}
