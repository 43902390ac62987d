import { invalid, type RsmError } from '../errors.ts'
import { shortened } from '../text/pieces.ts'

/** Characters of a selector that a message repeats. */
const longestShown = 100

/** Where a piece of a selector stands, and under which field of a request it came. */
export interface Place {
  readonly field: string
  /** The whole selector. */
  readonly text: string
  /** From 0; people are told from 1. */
  readonly at: number
}

/** A selector that can't be read: says what and where. */
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
 * Whether `text` matches `mask`, where `*` stands for any text and `?` for one character. Never worse than
 * mask × text: a regular expression with many stars would let one selector stop the server. `spend` hears of the
 * characters compared, for many such masks over many texts would stop it too.
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
