import { type Place, syntaxError } from './syntax.ts'

/** Most names that one selector can expand to: ten times the largest fleet we aim at. */
const maxNames = 100_000

/** Most characters of these names in all: 10,000 hosts with the longest names, or all of them with usual ones. */
const maxCharacters = 5_000_000

/** Most indexes that its brackets list, because repeating a range a thousand times takes a thousand times as long. */
const maxIndexes = 10 * maxNames

/** Remaining budget of the selectors of one request. */
export interface Room {
  names: number
  characters: number
  indexes: number
}

export const createRoom = (): Room => ({ names: maxNames, characters: maxCharacters, indexes: maxIndexes })

/** Longer numbers are not indexes, because sums of them would lose digits. */
export const maxIndexDigits = 15

const isPadded = (digits: string): boolean => digits.length > 1 && digits.startsWith('0')

interface Range {
  readonly first: number
  readonly last: number
  readonly step: number
  /** Zero-padded length, 0 for none. */
  readonly width: number
}

const element = /^(\d+)(?:\s*-\s*(\d+)(?:\s*\/\s*(\d+))?)?$/

function parseRange(text: string, adjoins: boolean, place: Place): Range {
  const match = element.exec(text)
  if (!match) {
    if (text === '') throw syntaxError('empty range', place)
    throw syntaxError(`"${text}" is not a number or a range like 1-9 or 1-9/2`, place)
  }
  const [, from = '', to = from, step = '1'] = match
  if (Math.max(from.length, to.length, step.length) > maxIndexDigits)
    throw syntaxError(`numbers in "${text}" have more than ${maxIndexDigits} digits`, place)
  if ((isPadded(from) || isPadded(to)) && from.length !== to.length)
    throw syntaxError(
      `different padding in "${text}": write both ends with the same number of digits, like 01-10`,
      place,
    )
  // ClusterShell 1.9 reads 1[9-10] as 19 to 110. No one means that, so it is refused rather than guessed at.
  if (adjoins && from.length !== to.length)
    throw syntaxError(
      `"${text}" touches digits outside its bracket: its ends need the same number of digits`,
      place,
    )
  const range = { first: Number(from), last: Number(to), step: Number(step) }
  if (range.first > range.last) throw syntaxError(`the range "${text}" runs backwards`, place)
  if (range.step < 1) throw syntaxError(`the step of "${text}" is 0`, place)
  return { ...range, width: isPadded(from) ? from.length : 0 }
}

/** Expands a bracket's content like `01-10,15` to its indexes, with padding, without duplicates. */
function expandBracket(content: string, adjoins: boolean, room: Room, place: Place): string[] {
  const indexes = new Set<string>()
  let written = 0
  let at = place.at
  for (const text of content.split(',')) {
    const range = parseRange(text.trim(), adjoins, { ...place, at })
    const count = Math.floor((range.last - range.first) / range.step) + 1
    // Counts indexes as written; distinct ones may be fewer.
    written += count
    room.indexes -= count
    if (written > maxNames || room.indexes < 0) throw tooMany(place)
    for (let k = 0; k < count; k++)
      indexes.add(String(range.first + k * range.step).padStart(range.width, '0'))
    at += text.length + 1
  }
  return [...indexes]
}

function tooMany(place: Place): Error {
  return syntaxError(`the selector stands for more than ${maxNames.toLocaleString('en-US')} names`, place)
}

const longest = (texts: readonly string[]): number =>
  texts.reduce((length, text) => Math.max(length, text.length), 0)

/** A part with several values: the text before a bracket, and the indexes in it. */
interface Choice {
  readonly before: string
  readonly indexes: readonly string[]
}

/** Throws if the names exceed the budget, before any of them is built. */
function checkRoom(choices: readonly Choice[], last: string, room: Room, place: Place): void {
  let count = 1
  let length = last.length
  for (const { before, indexes } of choices) {
    count *= indexes.length
    length += before.length + longest(indexes)
  }
  if (count > room.names) throw tooMany(place)
  if (count * length > room.characters)
    throw syntaxError(
      `the names of the selector have more than ${maxCharacters.toLocaleString('en-US')} characters in all`,
      place,
    )
}

/** Every name of `rack[1-2]n[01-10]`. Charges `room`. Brackets must be balanced, as the caller ensures. */
export function expandPattern(text: string, room: Room, place: Place): string[] {
  const choices: Choice[] = []
  // Spans brackets with one index: `a[1-90000]b[1]b[1]…` would otherwise walk over all names at every bracket.
  let literal = ''
  let position = 0
  while (position < text.length) {
    const open = text.indexOf('[', position)
    const before = open < 0 ? text.slice(position) : text.slice(position, open)
    if (position > 0 && open >= 0 && /^\d*$/.test(before))
      throw syntaxError('two brackets need something other than digits between them', {
        ...place,
        at: place.at + open,
      })
    literal += before
    if (open < 0) break
    const close = text.indexOf(']', open)
    const adjoins = /\d/.test(text.charAt(open - 1)) || /\d/.test(text.charAt(close + 1))
    const inside = { ...place, at: place.at + open + 1 }
    const indexes = expandBracket(text.slice(open + 1, close), adjoins, room, inside)
    const [only] = indexes
    if (indexes.length === 1 && only !== undefined) literal += only
    else {
      choices.push({ before: literal, indexes })
      literal = ''
      checkRoom(choices, literal, room, inside)
    }
    position = close + 1
  }
  checkRoom(choices, literal, room, place)
  let names = ['']
  for (const { before, indexes } of choices)
    names = names.flatMap((name) => indexes.map((index) => name + before + index))
  if (literal !== '') names = names.map((name) => name + literal)
  room.names -= names.length
  for (const name of names) room.characters -= name.length
  return names
}
