import { invalid, type RsmError } from '../errors.ts'
import { shortened } from '../text/shortened.ts'

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
