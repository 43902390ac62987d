import { invalid } from '../errors.ts'
import { type Group, parseGroup } from './group.ts'
import { createRoom, expandPattern, type Room } from './nodeset-pattern.ts'
import { hasWildcard, type Place, syntaxError } from './syntax.ts'

/** Union, difference, intersection, symmetric difference: left to right, without precedence (contract §8). */
export type Operator = ',' | '!' | '&' | '^'

/**
 * An operand with its node sets expanded, and the operator before it (`,` for the first). `field`: its field in a
 * request, if that differs from the field of its selector.
 */
export type Term = { readonly operator: Operator; readonly field?: string } & (
  | { readonly kind: 'names'; readonly names: readonly string[] }
  | { readonly kind: 'wildcards'; readonly masks: readonly string[] }
  | { readonly kind: 'groups'; readonly groups: readonly Group[] }
  | { readonly kind: 'selector'; readonly selector: Selector }
)

export interface Selector {
  readonly text: string
  readonly terms: readonly Term[]
}

interface Operand {
  readonly operator: Operator
  readonly text: string
  readonly place: Place
}

const isOperator = (sign: string): sign is Operator =>
  sign === ',' || sign === '!' || sign === '&' || sign === '^'

function operand(operator: Operator, raw: string, { field, text: whole, at }: Place): Operand {
  const text = raw.trim()
  // Avoids spreads, which would take most of the time of a selector with 100,000 operands.
  const place = { field, text: whole, at: at + raw.length - raw.trimStart().length }
  if (text === '') throw syntaxError('a name or group is missing next to an operator', place)
  return { operator, text, place }
}

function split(text: string, field: string): Operand[] {
  const operands: Operand[] = []
  let start = 0
  let operator: Operator = ','
  let open = -1
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '[') {
      if (open >= 0) throw syntaxError('a bracket inside a bracket', { field, text, at })
      open = at
    } else if (sign === ']') {
      if (open < 0) throw syntaxError('a closing bracket without an opening one', { field, text, at })
      open = -1
    } else if (open < 0 && isOperator(sign)) {
      operands.push(operand(operator, text.slice(start, at), { field, text, at: start }))
      operator = sign
      start = at + 1
    }
  }
  if (open >= 0) throw syntaxError('a bracket is not closed', { field, text, at: open })
  operands.push(operand(operator, text.slice(start), { field, text, at: start }))
  return operands
}

function checkName(name: string, allowed: RegExp, place: Place): void {
  if (/\s/.test(name)) throw syntaxError(`a space in "${name}": names are separated by commas`, place)
  if (!allowed.test(name)) throw syntaxError(`"${name}" is not a host name`, place)
  if (name.length > 253) throw syntaxError('a host name has at most 253 characters', place)
}

const hostname = /^[A-Za-z0-9._-]+$/
const hostnameMask = /^[A-Za-z0-9._*?-]+$/

function parseOperand({ operator, text, place }: Operand, room: Room): Term {
  if (text.startsWith('@')) {
    if (text === '@') throw syntaxError('the name of a group is missing after "@"', place)
    const names = expandPattern(text.slice(1), room, { ...place, at: place.at + 1 })
    return { operator, kind: 'groups', groups: names.map((name) => parseGroup(name.trim(), place)) }
  }
  const names = expandPattern(text, room, place)
  const wild = hasWildcard(text)
  for (const name of names) checkName(name, wild ? hostnameMask : hostname, place)
  if (wild) return { operator, kind: 'wildcards', masks: names.map((mask) => mask.toLowerCase()) }
  return { operator, kind: 'names', names }
}

/**
 * Parses a selector (contract §8); its names need not exist. `field` is its field in a request, `room` the budget of
 * all selectors of that request. Throws `invalid` with one fault that gives the problem and the character.
 */
export function parseSelector(text: string, field = 'selector', room = createRoom()): Selector {
  if (text.trim() === '') throw invalid([{ field, message: 'must not be blank' }])
  return { text, terms: split(text, field).map((operand) => parseOperand(operand, room)) }
}
