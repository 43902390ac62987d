import { RsmError } from '../../core/errors.ts'
import { Misuse } from '../flags/misuse.ts'
import { near } from './suggestion.ts'

/** What oclif's parser throws; told by its shape, so that oclif is not loaded here. */
interface ParseError extends Error {
  readonly oclif: unknown
  readonly flags?: readonly string[]
  readonly args?: readonly unknown[]
}

/** Whether an error is a mistake in the words typed. */
export function isMisuse(error: unknown): error is ParseError | Misuse {
  return error instanceof Misuse || (error instanceof Error && 'oclif' in error)
}

/** Which command lists the values that an argument may have. */
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

function optionNear(typed: string, flags: readonly string[]): string | undefined {
  const word = typed.split('=', 1)[0] ?? ''
  if ((word === '-o' || word === '--output') && flags.includes('json')) return '--json'
  const found = word.startsWith('--') ? near(word.slice(2), flags) : undefined
  return found === undefined ? undefined : `--${found}`
}

/** Options that choose a server: only commands of this machine lack them. */
const choosesServer = /^--(?:url|context|token-file|ca-file|tls-fingerprint)(?:=|$)/

function unknownOptions(typed: readonly string[], flags: readonly string[]): string {
  if (typed.every((word) => choosesServer.test(word)))
    return `unknown option ${typed.join(', ')}: this command works on this machine only`
  const meant = optionNear(typed[0] ?? '', flags)
  return `unknown option ${typed.join(', ')}${meant === undefined ? '' : ` (did you mean ${meant}?)`}`
}

/** The two sentences of the parser that have no class of their own. */
function plainSentence(message: string): string {
  return message
    .replace(/^Flag (--\S+) expects a value$/, '$1 needs a value')
    .replace(/^Flag (--\S+) can only be specified once$/, '$1 is given twice')
}

/** The mistake in our words, with what to type instead. `flags`: the names of those that the command `id` has. */
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
      return usage(`missing ${missing.join(' ')}`, list === undefined ? help : `${list} names them; ${help}`)
    }
    default:
      return usage(plainSentence(error.message))
  }
}
