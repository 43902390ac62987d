import { durationSeconds } from '../text/duration.ts'
import { nearest } from '../text/nearest.ts'
import { paramFaults, paramNameFault } from './params.ts'
import type { ScriptType } from './script-form.ts'

/** A parameter as a script declares it. */
export interface DeclaredParam {
  readonly name: string
  /** It has to be given, and not empty. */
  readonly required: boolean
  readonly secret: boolean
  /** What it is where it is not given; null: then the script does not get it. */
  readonly default: string | null
  /** What a value has to match as a whole, in the syntax of RE2; null: anything will do. */
  readonly pattern: string | null
  /** For people; may be empty. */
  readonly description: string
}

/** What a script says of itself in the comments at its head (docs/use/scripts.md); what it does not say is left out. */
export interface FrontMatter {
  readonly name?: string
  readonly type?: ScriptType
  /** Seconds of run time on a host; 0 = none. */
  readonly timeout?: number
  readonly description?: string
  readonly tags?: readonly string[]
  readonly category?: string
  /** In the order in which they are declared. */
  readonly params: readonly DeclaredParam[]
}

/** What can't be read as front matter; line and column count from 1, columns in characters. */
export interface FrontMatterFault {
  readonly line: number
  readonly column: number
  readonly message: string
}

export interface FrontMatterRead {
  readonly matter: FrontMatter
  readonly faults: readonly FrontMatterFault[]
  /** The first line that looks like front matter but stands below the head, where it means nothing. */
  readonly late: number | null
}

type Mutable<T> = { -readonly [key in keyof T]: T[key] }
type Draft = Omit<Mutable<FrontMatter>, 'params'>
type Setting = keyof Draft

const settings: readonly Setting[] = ['name', 'type', 'timeout', 'description', 'tags', 'category']
const marker = /^[ \t]*#[ \t]*rsm:/
/** Of one script: far more than anybody can give, and a bound for texts that mean harm. */
const maxParams = 200
/** Characters. */
const longestPattern = 200
/** Nobody mends more at once; what stands behind them is not read. */
const maxFaults = 100
/** Lines that are searched for front matter in the wrong place. */
const maxSearched = 200
const types: readonly ScriptType[] = ['BASH', 'PYTHON', 'POWERSHELL']

/** A fault at a place in the line that is being read. */
class Misplaced extends Error {
  readonly at: number
  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

/** One line behind its marker, read from left to right. */
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

  /** What matches here (`y`), and goes on behind it; empty where nothing does. */
  match(pattern: RegExp): string {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.at += found.length
    return found
  }

  /** A text in double quotes, in which `\"` and `\\` stand for `"` and `\`; undefined where none begins. */
  quoted(): string | undefined {
    const from = this.at
    if (this.#text[from] === "'") throw new Misplaced(from, `a text stands in double quotes ("), not in '`)
    if (this.#text[from] !== '"') return undefined
    const found = this.match(/"(?:[^"\\]|\\.)*"/y)
    if (found === '') throw new Misplaced(from, 'this text is not closed: its second " is missing')
    return found.slice(1, -1).replace(/\\(["\\])/g, '$1')
  }
}

/** Which setting a text sets, and what of it can't be. */
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
  if (draft[setting] !== undefined) throw new Misplaced(at, `${setting} is said twice: keep one`)
  const from = line.at
  const value = line.quoted() ?? line.match(/[^,]*/y).trim()
  if (value === '') throw new Misplaced(from, `${setting}= has no value: give it one, or take it out`)
  set(draft, setting, value, from)
}

const attributes = 'required, secret, default=VALUE, pattern="REGEX" or a "text"'

function readPattern(line: Scanner, at: number): string {
  const pattern = line.quoted() ?? line.match(/[^\s,]*/y)
  if (pattern === '') throw new Misplaced(at, 'pattern= has no value: give it one, or take it out')
  if (pattern.length > longestPattern)
    throw new Misplaced(at, `a pattern has at most ${longestPattern} characters`)
  return pattern
}

/** What follows `param`: a name, then its attributes in any order. */
function readParam(line: Scanner, params: readonly DeclaredParam[]): DeclaredParam {
  const at = line.at
  const name = line.match(/[^\s,="]*/y)
  if (name === '' || /^(required|secret|default|pattern)$/.test(name))
    throw new Misplaced(at, 'param has no name: write param NAME required "what it is"')
  const fault = paramNameFault(name)
  if (fault !== null) throw new Misplaced(at, `${name} ${fault}`)
  const value = line.match(/=[^\s,]*/y)
  if (value !== '')
    throw new Misplaced(at, `a param has its default behind default=: param ${name} default${value}`)
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
    if (said.has(word)) throw new Misplaced(from, `${word} is said twice of param ${name}`)
    said.add(word)
    if (text !== undefined) param.description = text
    else if (word === 'required') param.required = true
    else if (word === 'secret') param.secret = true
    else if (word === 'default=') param.default = line.quoted() ?? line.match(/[^\s,]*/y)
    else if (word === 'pattern=') param.pattern = readPattern(line, from)
    else throw new Misplaced(from, `${word} is nothing that a param has: ${attributes}`)
  }
  if (param.default === null) return param
  if (param.required) throw new Misplaced(at, `param ${name} is required, so its default is never taken`)
  if (param.secret)
    throw new Misplaced(at, `param ${name} is secret: a default in the script could be read by all`)
  const [bad] = paramFaults('params', { [name]: param.default })
  if (bad !== undefined) throw new Misplaced(at, `the default of ${name} ${bad.message}`)
  return param
}

function readItems(line: Scanner, draft: Draft, params: DeclaredParam[]): void {
  if (line.ended) throw new Misplaced(line.at, 'nothing follows rsm: here')
  while (!line.ended) {
    const at = line.at
    const word = line.match(/[^\s,="]*/y)
    if (word === 'param' && line.match(/[ \t]+/y) !== '') params.push(readParam(line, params))
    else if (line.match(/[ \t]*=[ \t]*/y) !== '') readSetting(line, word, at, draft)
    else
      throw new Misplaced(
        at,
        `expected KEY=VALUE or param NAME${word === '' ? '' : `, not ${word}`}; a value with a comma stands in double quotes`,
      )
    line.blanks()
    const end = line.at
    if (!line.ended && line.match(/,/y) === '')
      throw new Misplaced(end, 'expected a comma here, or the end of the line')
    line.blanks()
  }
}

/** Where the head ends: behind the last of the comments and blank lines that a script begins with. */
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

/** Reads the `# rsm:` lines at the head of a script; the faults come back, at most one a line and 100 in all. */
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
