import { durationSeconds } from '../text/duration.ts'
import { nearest } from '../text/nearest.ts'
import { paramFaults, paramNameFault } from './params.ts'
import type { ScriptType } from './script-form.ts'

export interface DeclaredParam {
  readonly name: string
  /** Must be given and not empty. */
  readonly required: boolean
  readonly secret: boolean
  /** Value if none is given; null: the script does not get the param. */
  readonly default: string | null
  /** RE2 pattern that the whole value must match; null: any value. */
  readonly pattern: string | null
  /** For people; may be empty. */
  readonly description: string
}

/** Settings in the comments at the head of a script (docs/use/scripts.md); undeclared ones are absent. */
export interface FrontMatter {
  readonly name?: string
  readonly type?: ScriptType
  /** Seconds of run time on a host; 0 = no limit. */
  readonly timeout?: number
  readonly description?: string
  readonly tags?: readonly string[]
  readonly category?: string
  /** In order of declaration. */
  readonly params: readonly DeclaredParam[]
}

/** Invalid front matter; line and column count from 1, columns in characters. */
export interface FrontMatterFault {
  readonly line: number
  readonly column: number
  readonly message: string
}

export interface FrontMatterRead {
  readonly matter: FrontMatter
  readonly faults: readonly FrontMatterFault[]
  /** First line that looks like front matter but is below the head, where it has no effect. */
  readonly late: number | null
}

type Mutable<T> = { -readonly [key in keyof T]: T[key] }
type Draft = Omit<Mutable<FrontMatter>, 'params'>
type Setting = keyof Draft

const settings: readonly Setting[] = ['name', 'type', 'timeout', 'description', 'tags', 'category']
const marker = /^[ \t]*#[ \t]*rsm:/
/** Most params of a script: more than anyone needs, and a bound for hostile texts. */
const maxParams = 200
/** Characters. */
const longestPattern = 200
/** Parsing stops after these, because no one fixes more at once. */
const maxFaults = 100
/** Lines searched for misplaced front matter. */
const maxSearched = 200
const types: readonly ScriptType[] = ['BASH', 'PYTHON', 'POWERSHELL']

class Misplaced extends Error {
  readonly at: number
  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

/** One line after its marker, read from left to right. */
class Scanner {
  readonly #text: string
  at: number

  constructor(text: string, from: number) {
    this.#text = text
    this.at = from
    this.blanks()
  }

  get ended(): boolean {
    return this.at >= this.#text.length
  }

  blanks(): void {
    this.match(/[ \t\r]*/y)
  }

  /** Consumes what matches here (`y` flag); empty if nothing does. */
  match(pattern: RegExp): string {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.at += found.length
    return found
  }

  /** Reads a text in double quotes, with `\"` and `\\` for `"` and `\`; undefined if none begins here. */
  quoted(): string | undefined {
    const from = this.at
    if (this.#text[from] === "'") throw new Misplaced(from, `put a text in double quotes ("), not in '`)
    if (this.#text[from] !== '"') return undefined
    const found = this.match(/"(?:[^"\\]|\\.)*"/y)
    if (found === '') throw new Misplaced(from, 'this text is not closed: its second " is missing')
    return found.slice(1, -1).replace(/\\(["\\])/g, '$1')
  }
}

function set(draft: Draft, setting: Setting, value: string, at: number): void {
  if (setting === 'type') {
    const type = types.find((each) => each === value.toUpperCase())
    if (type === undefined)
      throw new Misplaced(at, `no such type: ${value} (one of ${types.join(', ').toLowerCase()})`)
    draft.type = type
  } else if (setting === 'timeout') {
    const seconds = durationSeconds(value)
    if (seconds === null || !Number.isInteger(seconds))
      throw new Misplaced(at, `timeout takes whole seconds like 90, 90s, 5m or 2h, not ${value}`)
    draft.timeout = seconds
  } else if (setting === 'tags') draft.tags = value.split(/[ \t]+/).filter((tag) => tag !== '')
  else draft[setting] = value
}

function readSetting(line: Scanner, key: string, at: number, draft: Draft): void {
  const setting = settings.find((each) => each === key)
  if (setting === undefined) {
    const near = nearest(key, [...settings, 'param'])
    const meant = near === undefined ? `one of ${settings.join(', ')}` : `did you mean ${near}?`
    throw new Misplaced(at, `no such setting: ${key} (${meant})`)
  }
  if (draft[setting] !== undefined) throw new Misplaced(at, `${setting} is set twice: keep one`)
  const from = line.at
  const value = line.quoted() ?? line.match(/[^,]*/y).trim()
  if (value === '') throw new Misplaced(from, `${setting}= has no value: give it one, or remove it`)
  set(draft, setting, value, from)
}

const attributes = 'required, secret, default=VALUE, pattern="REGEX" or a "text"'

function readPattern(line: Scanner, at: number): string {
  const pattern = line.quoted() ?? line.match(/[^\s,]*/y)
  if (pattern === '') throw new Misplaced(at, 'pattern= has no value: give it one, or remove it')
  if (pattern.length > longestPattern)
    throw new Misplaced(at, `a pattern has at most ${longestPattern} characters`)
  return pattern
}

/** Reads a param: its name, then its attributes in any order. */
function readParam(line: Scanner, params: readonly DeclaredParam[]): DeclaredParam {
  const at = line.at
  const name = line.match(/[^\s,="]*/y)
  if (name === '' || /^(required|secret|default|pattern)$/.test(name))
    throw new Misplaced(at, 'param has no name: write param NAME required "what it is"')
  const fault = paramNameFault(name)
  if (fault !== null) throw new Misplaced(at, `${name} ${fault}`)
  const value = line.match(/=[^\s,]*/y)
  if (value !== '')
    throw new Misplaced(at, `write the default of a param as default=: param ${name} default${value}`)
  if (params.length >= maxParams) throw new Misplaced(at, `a script declares at most ${maxParams} params`)
  if (params.some((each) => each.name === name)) throw new Misplaced(at, `param ${name} is declared twice`)
  const param: Mutable<DeclaredParam> = {
    name,
    required: false,
    secret: false,
    default: null,
    pattern: null,
    description: '',
  }
  const said = new Set<string>()
  for (line.blanks(); ; line.blanks()) {
    const from = line.at
    const text = line.quoted()
    const word = text === undefined ? line.match(/[^\s,="]+=?/y) : 'text'
    if (word === '') break
    if (said.has(word)) throw new Misplaced(from, `${word} is given twice for param ${name}`)
    said.add(word)
    if (text !== undefined) param.description = text
    else if (word === 'required') param.required = true
    else if (word === 'secret') param.secret = true
    else if (word === 'default=') param.default = line.quoted() ?? line.match(/[^\s,]*/y)
    else if (word === 'pattern=') param.pattern = readPattern(line, from)
    else throw new Misplaced(from, `unknown attribute ${word}: use ${attributes}`)
  }
  if (param.default === null) return param
  if (param.required) throw new Misplaced(at, `param ${name} is required, so its default is never used`)
  if (param.secret)
    throw new Misplaced(at, `param ${name} is secret: anyone could read a default in the script`)
  const [bad] = paramFaults('params', { [name]: param.default })
  if (bad !== undefined) throw new Misplaced(at, `the default of ${name} ${bad.message}`)
  return param
}

function readItems(line: Scanner, draft: Draft, params: DeclaredParam[]): void {
  if (line.ended) throw new Misplaced(line.at, 'nothing follows rsm:')
  while (!line.ended) {
    const at = line.at
    const word = line.match(/[^\s,="]*/y)
    if (word === 'param' && line.match(/[ \t]+/y) !== '') params.push(readParam(line, params))
    else if (line.match(/[ \t]*=[ \t]*/y) !== '') readSetting(line, word, at, draft)
    else
      throw new Misplaced(
        at,
        `expected KEY=VALUE or param NAME${word === '' ? '' : `, not ${word}`}; put a value with a comma in double quotes`,
      )
    line.blanks()
    const end = line.at
    if (!line.ended && line.match(/,/y) === '')
      throw new Misplaced(end, 'expected a comma here, or the end of the line')
    line.blanks()
  }
}

/** Returns the head: the comments and blank lines at the beginning of a script. */
function headLines(content: string): string[] {
  const lines: string[] = []
  for (let from = content.startsWith('\ufeff') ? 1 : 0; from < content.length; ) {
    const end = content.indexOf('\n', from)
    const line = content.slice(from, end < 0 ? undefined : end)
    if (!/^[ \t\r]*(#|$)/.test(line)) break
    lines.push(line)
    from = end < 0 ? content.length : end + 1
  }
  return lines
}

/** Reads the `# rsm:` lines at the head of a script; returns at most one fault per line and 100 in all. */
export function parseFrontMatter(content: string): FrontMatterRead {
  const draft: Draft = {}
  const params: DeclaredParam[] = []
  const faults: FrontMatterFault[] = []
  const head = headLines(content)
  for (const [index, text] of head.entries()) {
    const found = marker.exec(text)?.[0]
    if (found === undefined) continue
    if (faults.length >= maxFaults) break
    try {
      readItems(new Scanner(text, found.length), draft, params)
    } catch (error) {
      if (!(error instanceof Misplaced)) throw error
      const column = Array.from(text.slice(0, error.at)).length + 1
      faults.push({ line: index + 1, column, message: error.message })
    }
  }
  const below = content
    .split('\n', maxSearched)
    .findIndex((line, at) => at >= head.length && marker.test(line))
  return { matter: { ...draft, params }, faults, late: below < 0 ? null : below + 1 }
}
