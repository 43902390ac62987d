import { type Place, syntaxError } from './syntax-error.ts'

/** How many names one selector may stand for: ten times the largest fleet we aim at. */
export const maxNames = 100_000

/** Past this a number is no index any more: sums of it would lose digits. */
export const maxIndexDigits = 15

const isPadded = (digits: string): boolean => digits.length > 1 && digits.startsWith('0')

interface Range {
  readonly first: number
  readonly last: number
  readonly step: number
  /** Length to pad to with zeros, 0 for none. */
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
      `padding of unlike length in "${text}": write both ends with as many digits, like 01-10`,
      place,
    )
  // ClusterShell 1.9 reads 1[9-10] as 19 to 110. Nobody means that, so it is refused rather than guessed at.
  if (adjoins && from.length !== to.length)
    throw syntaxError(`"${text}" touches digits outside its bracket: its ends need as many digits`, place)
  const range = { first: Number(from), last: Number(to), step: Number(step) }
  if (range.first > range.last) throw syntaxError(`the range "${text}" runs backwards`, place)
  if (range.step < 1) throw syntaxError(`the step of "${text}" is 0`, place)
  return { ...range, width: isPadded(from) ? from.length : 0 }
}

/** Every index that a bracket's content like `01-10,15` stands for, padding kept, none twice. */
function expandBracket(content: string, adjoins: boolean, place: Place): string[] {
  const indexes = new Set<string>()
  let at = place.at
  for (const text of content.split(',')) {
    const range = parseRange(text.trim(), adjoins, { ...place, at })
    const count = Math.floor((range.last - range.first) / range.step) + 1
    if (indexes.size + count > maxNames) throw tooMany(place)
    for (let k = 0; k < count; k++)
      indexes.add(String(range.first + k * range.step).padStart(range.width, '0'))
    at += text.length + 1
  }
  return [...indexes]
}

function tooMany(place: Place): Error {
  return syntaxError(`the selector stands for more than ${maxNames.toLocaleString('en-US')} names`, place)
}

/**
 * Every name that `rack[1-2]n[01-10]` stands for; text without a bracket stands for itself. `room` is how many names
 * the selector may still hold. The text has balanced brackets: the caller has split it so.
 */
export function expandPattern(text: string, room: number, place: Place): string[] {
  let names = ['']
  let position = 0
  while (position < text.length) {
    const open = text.indexOf('[', position)
    const literal = open < 0 ? text.slice(position) : text.slice(position, open)
    if (position > 0 && open >= 0 && /^\d*$/.test(literal))
      throw syntaxError('two brackets need something other than digits between them', {
        ...place,
        at: place.at + open,
      })
    if (literal !== '') names = names.map((name) => name + literal)
    if (open < 0) break
    const close = text.indexOf(']', open)
    const adjoins = /\d/.test(text.charAt(open - 1)) || /\d/.test(text.charAt(close + 1))
    const inside = { ...place, at: place.at + open + 1 }
    const indexes = expandBracket(text.slice(open + 1, close), adjoins, inside)
    if (names.length * indexes.length > room) throw tooMany(place)
    names = names.flatMap((name) => indexes.map((index) => name + index))
    position = close + 1
  }
  return names
}
