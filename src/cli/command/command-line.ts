import { RsmError } from '../../core/errors.ts'
import { nearest } from '../../core/text/nearest.ts'
import { type FlagShape, findCommand, globalFlags, splitGlobals, splitOptions } from './argv.ts'
import { commandMeant } from './usage.ts'

interface ManifestCommand {
  readonly flags: Record<string, FlagShape>
  /** False if options end at the first argument. */
  readonly strict?: boolean
  readonly relativePath: readonly string[]
}

export interface Manifest {
  readonly commands: Record<string, ManifestCommand>
}

export type Asked =
  | { readonly kind: 'help'; readonly words: readonly string[] }
  | {
      readonly kind: 'run'
      readonly id: string
      readonly argv: readonly string[]
      readonly command: ManifestCommand
      readonly json: boolean
    }

const isHelpFlag = (word: string) => word === '--help' || word === '-h'

function verbsOf(manifest: Manifest, topic: string): string[] {
  return Object.keys(manifest.commands)
    .filter((id) => id.startsWith(`${topic}:`))
    .map((id) => id.slice(topic.length + 1))
}

const usage = (message: string, hint = 'rsm --help') => new RsmError('usage', message, { hint })

function misplacedOption(option: string, globals: readonly string[]): RsmError {
  const known = ['--version', '--help', ...globals.map((name) => `--${name}`)]
  const meant = /^-[vV]$/.test(option) ? '--version' : nearest(option.replace(/=.*$/s, ''), known)
  return meant === undefined
    ? usage(`${option} goes after the command: only global flags may come before it`, 'rsm help flags')
    : usage(`unknown option: ${option} (did you mean rsm ${meant}?)`)
}

function refusedGlobal(name: string, { words, command }: { words: string[]; command: ManifestCommand }) {
  const typed = words.join(' ')
  return Object.hasOwn(command.flags, name)
    ? usage(`rsm ${typed} has a --${name} of its own: write it after the command`, `rsm ${typed} --help`)
    : usage(`rsm ${typed} has no --${name}, because it works on this machine only`, `rsm ${typed} --help`)
}

function unknownCommand(manifest: Manifest, argv: readonly string[]): RsmError {
  const [first = '', second] = argv
  const meaning = commandMeant(Object.keys(manifest.commands), argv)
  const meant = meaning === undefined ? '' : ` (did you mean rsm ${meaning}?)`
  const isTopic = second !== undefined && verbsOf(manifest, first).length > 0
  return isTopic
    ? usage(`unknown command: ${first} ${second}${meant}`, `rsm ${first} --help`)
    : usage(`unknown command: ${first}${meant}`)
}

/** Options of rsm itself, without the words of a command that runs on hosts. */
function ownOptions(command: ManifestCommand, argv: readonly string[]): readonly string[] {
  if (command.strict === false) return splitOptions(argv, command.flags).options
  const end = argv.indexOf('--')
  return end === -1 ? argv : argv.slice(0, end)
}

/** Whether errors are printed as JSON too; `-o json` of a list means `--json`. */
function asksJson(options: readonly string[]): boolean {
  return options.some(
    (word, at) =>
      word === '--json' ||
      word === '-ojson' ||
      word === '--output=json' ||
      (word === 'json' && (options[at - 1] === '-o' || options[at - 1] === '--output')),
  )
}

/** Parses a command line; throws `usage` for an unknown command, with the nearest verb (contract §9). */
export function readCommandLine(manifest: Manifest, argv: readonly string[]): Asked {
  const flags = argv[0]?.startsWith('-') ? globalFlags(manifest.commands) : {}
  const { globals, words: typed, names, pending } = splitGlobals(flags, argv)
  if (pending !== undefined) throw usage(`${globals.at(-1)} needs a value`, 'rsm help flags')
  const found = findCommand(manifest.commands, typed)
  if (found !== undefined) {
    const { id, command } = found
    const options = ownOptions(command, found.rest)
    if (options.some(isHelpFlag)) return { kind: 'help', words: found.words }
    const refused = names.find((name) => command.flags[name]?.helpGroup !== 'GLOBAL')
    if (refused !== undefined) throw refusedGlobal(refused, found)
    const json = asksJson([...globals, ...options])
    return { kind: 'run', id, argv: [...globals, ...found.rest], command, json }
  }
  const words = typed.filter((word, at) => !isHelpFlag(word) && !(at === 0 && word === 'help'))
  const [first] = words
  if (first === undefined || (typed[0] === 'help' && first === 'flags')) return { kind: 'help', words }
  if (first.startsWith('-')) throw misplacedOption(first, Object.keys(flags))
  if (words.length === 1 && verbsOf(manifest, first).length > 0) return { kind: 'help', words }
  const about = typed[0] === 'help' ? findCommand(manifest.commands, words) : undefined
  if (about !== undefined) return { kind: 'help', words: about.words }
  throw unknownCommand(manifest, words)
}
