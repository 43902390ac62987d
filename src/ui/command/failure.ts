import { stripVTControlCharacters } from 'node:util'
import { exitCode, type FieldFault, RsmError } from '../../core/errors.ts'
import { nearest } from '../../core/text/nearest.ts'
import { sanitize } from '../text/sanitize.ts'
import { columnsOf } from '../text/screen.ts'
import { withLocalTimes } from '../text/time.ts'
import { widthOf } from '../text/width.ts'
import { wrapSentence } from '../text/wrap.ts'
import { isLike } from './likeness.ts'
import { optionMeant } from './other-tools.ts'

/** What people and programs are told of a failure (contract §9). */
interface Failure {
  readonly exit: number
  readonly code: string
  readonly message: string
  readonly errors: readonly FieldFault[]
  readonly hint: string | null
}

/** Exit code where the time is over, of a host and of a wait (contract §9). */
export const timedOutExit = 124

/** What was not waited for any longer: `interrupted`, 130 by a Ctrl-C and 143 by SIGTERM, or `timeout`, 124 (contract §9). */
export class Halted extends RsmError {
  readonly exit: number

  constructor(exit: number, message: string, details?: ConstructorParameters<typeof RsmError>[2]) {
    super(exit === timedOutExit ? 'timeout' : 'interrupted', message, details)
    this.exit = exit
  }
}

/** No session could be had on a host: 255, as ssh has it. */
export class NoSession extends RsmError {
  readonly exit = 255

  constructor({ code, message, fields, hint }: RsmError) {
    super(code, message, { fields, ...(hint === undefined ? {} : { hint }) })
  }
}

/** A mistake in the words typed, as oclif's parser reports it; told by their shape, so that oclif is not loaded here. */
interface ParseError extends Error {
  readonly oclif: unknown
  readonly flags?: readonly string[]
  readonly args?: readonly unknown[]
}

function isParseError(error: unknown): error is ParseError {
  return error instanceof Error && 'oclif' in error
}

/** With what a line begins that tells of a further fault in the flags: the parser runs them into one message. */
const faultOfFlags = /^(?:--\S.* cannot also be provided when using --|Missing required flag )/

function faultsOf(text: string): string[] {
  const faults: string[] = []
  for (const line of text.split('\n'))
    if (faults.length === 0 || faultOfFlags.test(line.trimStart())) faults.push(line)
    else faults.push(`${faults.pop()}\n${line}`)
  return faults
}

function onOneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '').join(' ')
}

function plainMessage(error: Error): string {
  const text = stripVTControlCharacters(error.message).replace(/(?<!\n)\n*See more help with --help/g, '')
  const [, faults] = /^The following errors? occurred:\s*(.*)$/s.exec(text) ?? []
  if (faults === undefined) return plainSentence(text)
  // That two exclude each other is found of both: it is said once.
  const pairs = new Map(
    faultsOf(faults).map((fault) => {
      const sentence = plainSentence(fault)
      return [sentence.split(' ').sort().join(' '), sentence]
    }),
  )
  return [...pairs.values()].join('; ')
}

function plainSentence(text: string): string {
  return onOneLine(text.replace(/^Expected (\S+) to be/, '$1 is not'))
    .replace(
      /^Parsing (--\S+) Expected an integer (.*?)but received: (.*)$/s,
      (_, option, range: string, text) => {
        const bound = /(greater|less) than or equal to (-?\d+)/.exec(range)
        const limits = bound === null ? '' : ` ${bound[1] === 'greater' ? 'from' : 'up to'} ${bound[2]}`
        return `${option} takes a whole number${limits}, not ${text || 'nothing'}`
      },
    )
    .replace(/^Parsing --\S+ /, '')
    .replace(
      /^(--[^\s=]+)(?![^\s=]).* cannot also be provided when using (--[^\s=]+)(?:=\S*)?$/,
      '$1 and $2 exclude each other',
    )
    .replace(/^Missing required flag (\S+)$/, '--$1 is missing')
    .replace(/^Flag (--\S+) expects a value$/, '$1 needs a value')
    .replace(/^Flag (--\S+) can only be specified once$/, '$1 is given twice')
    .trim()
}

/** `--output=grupped is not one of: live, grouped`, with the one that was probably meant. */
function withNearestValue(message: string): string {
  const [, typed, values] = /^(?:--[\w-]+=)?(.*) is not one of: (.*)$/s.exec(message) ?? []
  const near = typed === undefined ? undefined : nearest(typed, values?.split(', ') ?? [])
  return near === undefined ? message : `${message} (did you mean ${near}?)`
}

const blamed = new WeakMap<object, ReadonlyMap<string, string>>()

/** Makes `failureOf` name the variable instead of the flag that took its value from it, as nobody typed that one. */
export function blameVariables<E extends Error>(error: E, variables: ReadonlyMap<string, string>): E {
  blamed.set(error, variables)
  return error
}

function withVariables(message: string, variables: ReadonlyMap<string, string> | undefined): string {
  if (variables === undefined || variables.size === 0) return message
  return message.replace(
    /(?<![\w-])--([a-z][a-z-]*)/g,
    (option, name: string) => variables.get(name) ?? option,
  )
}

/** What lists the values that an argument may have. */
const listedBy: Readonly<Record<string, string>> = {
  TASK: 'rsm tasks list',
  HOST: 'rsm hosts list',
  SCRIPT: 'rsm scripts list',
  CLUSTER: 'rsm clusters list',
  USER: 'rsm users list',
  TOKEN: 'rsm tokens list',
  ENROLLMENT: 'rsm enrollments list',
  SESSION: 'rsm recordings list',
  RECORDING: 'rsm recordings list',
}

/** By its name alone: two dashes that agree make no two words alike. None is better than a wrong one. */
function nearOption(typed: string, flags: readonly string[]): string | undefined {
  const word = typed.replace(/^-+/, '')
  const near = typed.startsWith('--') ? nearest(word, flags) : undefined
  return near !== undefined && isLike(word, near) ? `--${near}` : undefined
}

/** The parser's message in our words, with what to type instead. */
function usageOf(error: ParseError, id: string, flags: readonly string[]): RsmError {
  const name = error.constructor.name
  const help = `rsm ${id.replaceAll(':', ' ')} --help`
  if (name === 'NonExistentFlagsError' && error.flags !== undefined) {
    const unknown = error.flags[0] ?? ''
    const isJson = /^(?:-o|--output)$/.test(unknown) && flags.includes('json')
    const near = isJson
      ? '--json'
      : (optionMeant(unknown, flags) ?? nearOption(unknown.split('=', 1)[0] ?? '', flags))
    const message = `unknown option ${error.flags.join(', ')}${near === undefined ? '' : ` (did you mean ${near}?)`}`
    return new RsmError('usage', message, { hint: help })
  }
  if (name === 'UnexpectedArgsError' && error.args !== undefined)
    return new RsmError('usage', `unexpected ${error.args.map(String).join(' ')}`, { hint: help })
  if (name === 'RequiredArgsError' && error.args !== undefined) {
    const missing = (error.args as readonly { name: string }[]).map((arg) => arg.name.toUpperCase())
    const list = listedBy[missing[0] ?? '']
    const hint = list === undefined ? help : `${list} names them; ${help}`
    return new RsmError('usage', `missing ${missing.join(' ')}`, { hint })
  }
  return new RsmError('usage', withNearestValue(plainMessage(error)), { hint: help })
}

/** Faults of a body in the words of a command line, where a selector is what was typed. */
function plainFaults(message: string): string {
  return message.replace(/^Validation failed: /, '').replace(/(^|; )(?:target\.)?selector: /g, '$1')
}

/** Any thrown value as what is shown; a defect shows its message and never a stack. */
export function failureOf(error: unknown, id = '', flags: readonly string[] = []): Failure {
  const cause = isParseError(error) ? usageOf(error, id, flags) : error
  const variables = error instanceof Error ? blamed.get(error) : undefined
  if (cause instanceof RsmError)
    return {
      exit: cause instanceof Halted || cause instanceof NoSession ? cause.exit : exitCode(cause),
      code: cause.code,
      message: withVariables(plainFaults(cause.message), variables),
      errors: cause.fields,
      hint: cause.hint ?? null,
    }
  const message = cause instanceof Error ? cause.message : String(cause)
  return {
    exit: exitCode(cause),
    code: 'internal',
    message: `internal error: ${message}`,
    errors: [],
    hint: null,
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file has become too large',
  EIO: 'the device reports an error',
}

/** That stdout takes no more, and why. */
export function unwritable({ code = '', message }: NodeJS.ErrnoException): RsmError {
  const why = reasons[code] ?? message
  return new RsmError('unavailable', `cannot write the output: ${why}; what was written is not all of it`)
}

/** How far a hint, and what goes on in a further line, stands in. */
const hintIndent = ' '.repeat(5)
const furtherIndent = ' '.repeat(7)
/** A terminal that is narrower breaks lines as well as we could. */
const leastColumns = 30

/**
 * The failure for people: a line, and below it the hint. Lines longer than `columns` are broken at their words, but in no command
 * that may be copied.
 */
export function failureText({ message, hint }: Failure, columns: number | undefined): string {
  const room = columns === undefined || columns < leastColumns ? undefined : columns - furtherIndent.length
  const broken = (text: string): string =>
    room === undefined || widthOf(hintIndent + text) <= room + furtherIndent.length
      ? text
      : wrapSentence(text, room).join(`\n${furtherIndent}`)
  const said = onOneLine(sanitize(withLocalTimes(message)))
  const steps = hint === null ? [] : sanitize(hint).split('\n')
  return [`rsm: ${broken(said)}`, ...steps.map((step) => hintIndent + broken(step)), ''].join('\n')
}

/** One line (and one for the hint) on stderr, or one line of JSON; answers the exit code. */
export function reportFailure(failure: Failure, json: boolean): number {
  if (json) process.stderr.write(`${JSON.stringify({ error: failure })}\n`)
  else process.stderr.write(failureText(failure, columnsOf(process.stderr)))
  return failure.exit
}
