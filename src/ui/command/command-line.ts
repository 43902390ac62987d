import { RsmError } from '../../core/errors.ts'
import { nearest } from '../../core/text/nearest.ts'
import { splitOptions } from './argv.ts'
import { findCommand } from './find-command.ts'
import { commandMeant } from './suggestion.ts'

interface ManifestCommand {
  readonly flags: Record<string, { readonly type: string; readonly char?: string }>
  /** False where the options end at the first other word. */
  readonly strict?: boolean
  readonly relativePath: readonly string[]
}

/** As much of oclif.manifest.json as it takes to find a command. */
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

function unknownCommand(manifest: Manifest, argv: readonly string[]): RsmError {
  const [first = '', second] = argv
  const usage = (message: string, hint = 'rsm --help') => new RsmError('usage', message, { hint })
  const ownOption = /^-[vV]$/.test(first) ? '--version' : nearest(first, ['--version', '--help'])
  if (first.startsWith('-') && ownOption !== undefined)
    return usage(`unknown option: ${first} (did you mean rsm ${ownOption}?)`)
  if (first.startsWith('-')) return usage(`a command comes before its options: ${first}`)
  const meaning = commandMeant(Object.keys(manifest.commands), argv)
  const meant = meaning === undefined ? '' : ` (did you mean rsm ${meaning}?)`
  const isTopic = second !== undefined && verbsOf(manifest, first).length > 0
  return isTopic
    ? usage(`unknown command: ${first} ${second}${meant}`, `rsm ${first} --help`)
    : usage(`unknown command: ${first}${meant}`)
}

/** The options of a command line, without what belongs to a command that is to run elsewhere. */
function ownOptions(command: ManifestCommand, argv: readonly string[]): readonly string[] {
  if (command.strict === false) return splitOptions(argv, command.flags).options
  const end = argv.indexOf('--')
  return end === -1 ? argv : argv.slice(0, end)
}

/** Whether errors are to be JSON, too; `-o json` of a list is `--json`. */
function asksJson(options: readonly string[]): boolean {
  return options.some(
    (word, at) =>
      word === '--json' ||
      word === '-ojson' ||
      word === '--output=json' ||
      (word === 'json' && (options[at - 1] === '-o' || options[at - 1] === '--output')),
  )
}

/** Reads a command line; an unknown command rejects with `usage` and the nearest verb (contract §9). */
export function readCommandLine(manifest: Manifest, argv: readonly string[]): Asked {
  const found = findCommand(manifest.commands, argv)
  if (found !== undefined) {
    const options = ownOptions(found.command, found.rest)
    if (options.some(isHelpFlag)) return { kind: 'help', words: found.words }
    const { id, command } = found
    return { kind: 'run', id, argv: found.rest, command, json: asksJson(options) }
  }
  const words = argv.filter((word, at) => !isHelpFlag(word) && !(at === 0 && word === 'help'))
  if (words.length === 0) return { kind: 'help', words: [] }
  if (words.length === 1 && verbsOf(manifest, words[0] ?? '').length > 0) return { kind: 'help', words }
  const about = argv[0] === 'help' ? findCommand(manifest.commands, words) : undefined
  if (about !== undefined) return { kind: 'help', words: about.words }
  throw unknownCommand(manifest, words)
}
