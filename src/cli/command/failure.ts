import { exitCode, type FieldFault, RsmError } from '../../core/errors.ts'
import { whyUnwritable } from '../../disk/named-files.ts'
import { jsonText, sanitize } from '../text/sanitize.ts'
import { columnsOf } from '../text/screen.ts'
import { withLocalTimes } from '../text/time.ts'
import { widthOf, wrapSentence } from '../text/width.ts'
import { isMisuse, Misuse, usageOf } from './usage.ts'

/** Failure as printed, for people or as JSON (contract §9). */
interface Failure {
  readonly exit: number
  readonly code: string
  readonly message: string
  readonly errors: readonly FieldFault[]
  readonly hint: string | null
}

/** Exit code of a timeout, of a host or a wait (contract §9). */
export const timedOutExit = 124

/** A wait that ended early: `interrupted` (130 after Ctrl-C, 143 after SIGTERM) or `timeout` (124) (contract §9). */
export class Halted extends RsmError {
  readonly exit: number

  constructor(exit: number, message: string, details?: ConstructorParameters<typeof RsmError>[2]) {
    super(exit === timedOutExit ? 'timeout' : 'interrupted', message, details)
    this.exit = exit
  }
}

/** No session could be opened on a host: exit code 255, like ssh. */
export class NoTerminal extends RsmError {
  readonly exit = 255

  constructor({ code, message, fields, hint }: RsmError) {
    super(code, message, { fields, ...(hint === undefined ? {} : { hint }) })
  }
}

const onOneLine = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .join(' ')
    .trim()

/** Replaces flags in a message with the variables that set them, because the user typed no such flag. */
export function blameVariables<E extends Error>(error: E, variables: ReadonlyMap<string, string>): E {
  const named = (text: string) =>
    text.replace(/(?<![\w-])--([a-z][a-z-]*)/g, (option, name: string) => variables.get(name) ?? option)
  if (variables.size === 0) return error
  error.message = named(error.message)
  if (error instanceof Misuse) error.sentence = named(error.sentence)
  return error
}

/** Options named differently from their field. */
const optionOf: Readonly<Record<string, string>> = {
  timezone: 'tz',
  tags: 'tag',
  clusters: 'cluster',
  events: 'event',
  rights: 'right',
  path: 'to',
}

/** Fields that are arguments. `url` needs an entry, because every command has an unrelated flag `--url`. */
const words: Readonly<Record<string, string>> = {
  url: 'URL',
  'copy.path': 'path on hosts',
  'fetch.path': 'path on hosts',
}

const bare = (name: string) => name.replace(/[-.]/g, '').toLowerCase()

/** Name of a body's field on the command line: `--every` for `everySeconds`, `-p PATH`, `new password`. */
function fieldWord(field: string, flags: readonly string[]): string {
  if (field.startsWith('params.')) return `-p ${field.slice('params.'.length)}`
  const last = field.slice(field.lastIndexOf('.') + 1)
  const names = new Set(
    [optionOf[last] ?? last, field, last].map((name) => bare(name.replace(/(In)?(Seconds|Hours|Days)$/, ''))),
  )
  const option = flags.find((flag) => flag !== 'url' && names.has(bare(flag)))
  if (option !== undefined) return `--${option}`
  const spaced = last.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words[field] ?? (spaced === last ? field : spaced)
}

/** List index of a field, meaningless on a command line. */
const partIndex = /\[\d+\]$/

/** Rewords faults of a body's fields for the command line, except for `rsm api`, whose users type the fields. */
function plainFaults({ message, fields }: RsmError, id: string, flags: readonly string[]): string {
  if (id === 'api') return message.replace(/^Validation failed: /, '')
  const known = new Set(fields.map(({ field }) => field.replace(partIndex, '')))
  return message
    .replace(/^Validation failed: /, '')
    .replace(/(^|; )(target\.\w+)\[\d+\](?=: must )/g, '$1$2')
    .replace(/(^|; )matches no host(?=[:;]|$)/g, '$1the target matches no host')
    .replace(/(^|; )(?:(?:target\.)?selector|target\.\w+\[\d+\]): /g, '$1')
    .replace(
      /(^|; )([\w.-]+):( must| takes| leads| names|)(?= )/g,
      (whole, before: string, field: string, verb: string) =>
        known.has(field) ? `${before}${fieldWord(field, flags)}${verb || ':'}` : whole,
    )
}

/** Adds a hint to `no such task`, which servers send without one. */
const hintOf = ({ code, message, hint }: RsmError): string | null =>
  hint ?? (code === 'not_found' && message.startsWith('no such task: ') ? 'rsm tasks list' : null)

/** The failure for any thrown value; a bug shows its message, never a stack. */
export function failureOf(error: unknown, id = '', flags: readonly string[] = []): Failure {
  const cause = isMisuse(error) ? usageOf(error, id, flags) : error
  if (cause instanceof RsmError)
    return {
      exit: cause instanceof Halted || cause instanceof NoTerminal ? cause.exit : exitCode(cause),
      code: cause.code,
      message: plainFaults(cause, id, flags),
      errors: cause.fields,
      hint: hintOf(cause),
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

export function unwritable(error: NodeJS.ErrnoException): RsmError {
  const message = `cannot write the output: ${whyUnwritable(error)}; the output is incomplete`
  return new RsmError('unavailable', message)
}

const hintIndent = ' '.repeat(5)
const furtherIndent = ' '.repeat(7)
/** Narrower terminals wrap lines no worse than we would. */
const leastColumns = 30

/** A failure for people: the message, then the hint. Wraps at `columns`, but never inside a command, so that it can be copied. */
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

/** Prints the failure on stderr, for people or as one line of JSON; returns the exit code. */
export function reportFailure(failure: Failure, json: boolean): number {
  if (json) process.stderr.write(`${jsonText({ error: failure })}\n`)
  else process.stderr.write(failureText(failure, columnsOf(process.stderr)))
  return failure.exit
}

/** Errors that every other item would run into too. */
const ofAll = new Set(['unreachable', 'unauthenticated', 'forbidden', 'interrupted'])

interface Each<T, R> {
  readonly nameOf: (item: T) => string
  readonly json: boolean
  /** Called once at the end, even after an error, unless no item succeeded. */
  readonly done?: (items: readonly T[], results: readonly R[]) => void
}

/**
 * Applies `work` to each item in turn and returns the results of those that succeed. With several items, a failure is reported
 * under the item's name and the highest exit code wins. Errors: that of a single item, or one that affects every item.
 */
export async function doToEach<T, R>(
  items: readonly T[],
  { nameOf, json, done }: Each<T, R>,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const changed: T[] = []
  try {
    for (const item of items) {
      try {
        results.push(await work(item))
        changed.push(item)
      } catch (error) {
        const isOwn = error instanceof RsmError && !ofAll.has(error.code)
        if (items.length === 1 || !isOwn) throw error
        const failure = failureOf(error)
        const name = nameOf(item)
        const message = failure.message.includes(name) ? failure.message : `${name}: ${failure.message}`
        const exit = reportFailure({ ...failure, message }, json)
        process.exitCode = Math.max(exit, Number(process.exitCode ?? 0))
      }
    }
  } finally {
    if (changed.length > 0) done?.(changed, results)
  }
  return results
}

/** Throws `usage` for an edit without changes, before any request. */
export function refuseEmpty(patch: object, command: string): void {
  if (Object.keys(patch).length === 0)
    throw new RsmError('usage', 'nothing to change', { hint: `rsm ${command} --help` })
}

/** Rephrases a `conflict`: the name is taken; `hint` shows how to see or change its owner. */
export async function refusingTaken<T>(what: string, hint: string, create: Promise<T>): Promise<T> {
  try {
    return await create
  } catch (error) {
    if (!(error instanceof RsmError) || error.code !== 'conflict') throw error
    throw new RsmError('conflict', `a ${what} already exists`, { fields: error.fields, hint, cause: error })
  }
}
