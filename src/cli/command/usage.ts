import { RsmError } from '../../core/errors.ts'
import { nearest } from '../../core/text/nearest.ts'

/** Commands that list the values of an argument. */
const listedBy: Readonly<Record<string, string>> = {
  TASK: 'rsm tasks list',
  HOST: 'rsm hosts list',
  SCRIPT: 'rsm scripts list',
  CLUSTER: 'rsm clusters list',
  USER: 'rsm users list',
  TOKEN: 'rsm tokens list',
  ENROLLMENT: 'rsm enrollments list',
  WEBHOOK: 'rsm webhooks list',
  SESSION: 'rsm recordings list',
  RECORDING: 'rsm recordings list',
}

/** Options that choose a server; only local commands lack them. */
const choosesServer = /^--(?:url|context|token-file|ca-file|tls-fingerprint)(?:=|$)/

/** Error of oclif's parser, recognized by its shape so that oclif need not be loaded. */
interface ParseError extends Error {
  readonly oclif: unknown
  readonly flags?: readonly string[]
  readonly args?: readonly unknown[]
}

/** A usage error. `sentence` keeps the original message, because oclif rewrites that of errors thrown by a `parse`. */
export class Misuse extends RsmError {
  sentence: string

  constructor(sentence: string) {
    super('usage', sentence)
    this.sentence = sentence
  }
}

export function isMisuse(error: unknown): error is ParseError | Misuse {
  return error instanceof Misuse || (error instanceof Error && 'oclif' in error)
}

/** Rephrases a usage error and suggests a correction. `flags`: names of the flags of command `id`. */
export function usageOf(error: ParseError | Misuse, id: string, flags: readonly string[]): RsmError {
  const help = `rsm ${id.replaceAll(':', ' ')} --help`
  const usage = (message: string, hint = help) => new RsmError('usage', message, { hint })
  if (error instanceof Misuse) return usage(error.sentence)
  switch (error.constructor.name) {
    case 'NonExistentFlagsError':
      return usage(unknownOptions(error.flags ?? [], flags))
    case 'UnexpectedArgsError':
      return usage(`unexpected ${error.args?.map(String).join(' ')}`)
    case 'RequiredArgsError': {
      const missing = (error.args as readonly { name: string }[]).map(({ name }) => name.toUpperCase())
      const list = listedBy[missing[0] ?? '']
      return usage(`missing ${missing.join(' ')}`, list === undefined ? help : `${list} shows them; ${help}`)
    }
    default:
      return usage(plainSentence(error.message))
  }
}

function unknownOptions(typed: readonly string[], flags: readonly string[]): string {
  if (typed.every((word) => choosesServer.test(word)))
    return `unknown option ${typed.join(', ')}: this command works on this machine only`
  const meant = optionNear(typed[0] ?? '', flags)
  return `unknown option ${typed.join(', ')}${meant === undefined ? '' : ` (did you mean ${meant}?)`}`
}

function optionNear(typed: string, flags: readonly string[]): string | undefined {
  const word = typed.split('=', 1)[0] ?? ''
  if ((word === '-o' || word === '--output') && flags.includes('json')) return '--json'
  const found = word.startsWith('--') ? near(word.slice(2), flags) : undefined
  return found === undefined ? undefined : `--${found}`
}

/** Rephrases the two messages of the parser that have no error class. */
function plainSentence(message: string): string {
  return message
    .replace(/^Flag (--\S+) expects a value$/, '$1 needs a value')
    .replace(/^Flag (--\S+) can only be specified once$/, '$1 is given twice')
}

/** The command that was probably meant by the first words; `ids`: all commands (`hosts:list`). */
export function commandMeant(
  ids: readonly string[],
  [first = '', second]: readonly string[],
): string | undefined {
  const topic = near(first, [...new Set(ids.map((id) => id.split(':')[0] ?? ''))])
  if (topic === undefined || ids.includes(topic)) return topic
  const verbs = ids.flatMap((id) => (id.startsWith(`${topic}:`) ? [id.slice(topic.length + 1)] : []))
  const verb = second === undefined || second.startsWith('-') ? undefined : near(second, verbs)
  if (verb !== undefined) return `${topic} ${verb}`
  // The topic is correct, so the second word may be a command without a topic: `tasks logs`.
  if (topic !== first) return topic
  const commands = ids.filter((id) => !id.includes(':'))
  return second === undefined ? undefined : near(second, commands)
}

/** The known word that was probably meant; none if unsure, because a wrong suggestion is worse. */
function near(typed: string, known: readonly string[]): string | undefined {
  const found = nearest(typed, known)
  return found !== undefined && isLike(typed, found) ? found : undefined
}

/** Whether one word is a likely typo of the other; strict for short words, which a typo or two turns into any other. */
function isLike(typed: string, meant: string): boolean {
  const a = typed.toLowerCase()
  const b = meant.toLowerCase()
  if (a[0] === b[0]) return Math.min(a.length, b.length) > 2 || Math.abs(a.length - b.length) < 2
  // The first letter is rarely mistyped: if it differs, the rest must match, or the first two letters be swapped.
  return a.slice(1) === b.slice(1) || (a[0] === b[1] && a[1] === b[0]) || a === b.slice(1) || b === a.slice(1)
}
