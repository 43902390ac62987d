import { findCommand, globalFlags, splitGlobals } from '../command/argv.ts'
import { type Command, type Flag, type Kind, kindOf, type Manifest } from './kinds.ts'

export type Wanted =
  | { readonly is: 'nothing' }
  /** The next word of a command's name, after these. */
  | { readonly is: 'command'; readonly words: readonly string[] }
  | { readonly is: 'option'; readonly command: Command; readonly given: ReadonlySet<string> }
  | {
      readonly is: 'value'
      readonly of: Kind | readonly string[]
      /** The part of the word before the value: `--host=`, `-w`, or values before a delimiter. */
      readonly lead: string
    }

const nothing: Wanted = { is: 'nothing' }

function isTopic(manifest: Manifest, words: readonly string[]): boolean {
  if (words.length === 0) return true
  const start = `${words.join(':')}:`
  return Object.keys(manifest.commands).some((id) => id.startsWith(start))
}

/** The flag typed as `word`: `--name` or `-n`, including aliases. */
function flagOf(command: Command, word: string): Flag | undefined {
  return Object.values(command.flags).find((flag) =>
    word.startsWith('--')
      ? [flag.name, ...(flag.aliases ?? [])].includes(word.slice(2))
      : [flag.char, ...(flag.charAliases ?? [])].includes(word.slice(1)),
  )
}

/** In combined letters such as `-qwweb1`, the option that takes the rest of the word, and where its value starts. */
function attached(command: Command, word: string): { flag: Flag; at: number } | undefined {
  for (let at = 1; at < word.length; at++) {
    const flag = flagOf(command, `-${word[at] ?? ''}`)
    if (flag === undefined) return undefined
    if (flag.type === 'option') return { flag, at: at + 1 }
  }
  return undefined
}

function valueOf(command: Command, flag: Flag, lead: string, typed: string): Wanted {
  const of = flag.options ?? kindOf(command, `--${flag.name}`) ?? 'free'
  const last = flag.delimiter === undefined ? -1 : typed.lastIndexOf(flag.delimiter)
  return { is: 'value', of, lead: lead + typed.slice(0, last + 1) }
}

/** Scans the words after a command: `values` counts arguments; `pending` is a last option without its value. */
function readArguments(command: Command, words: readonly string[]) {
  const given = new Set<string>()
  let values = 0
  let pending: Flag | undefined
  let optionsOver = false
  for (const word of words) {
    if (pending !== undefined) pending = undefined
    else if (optionsOver) values++
    else if (word === '--') optionsOver = true
    else if (word.startsWith('--')) {
      const flag = flagOf(command, word.replace(/=.*$/s, ''))
      if (flag === undefined) continue
      given.add(flag.name)
      if (flag.type === 'option' && !word.includes('=')) pending = flag
    } else if (word.startsWith('-') && word !== '-') {
      for (const letter of word.slice(1)) {
        const flag = flagOf(command, `-${letter}`)
        if (flag !== undefined) given.add(flag.name)
      }
      const holder = attached(command, word)
      if (holder !== undefined && holder.at === word.length) pending = holder.flag
    } else {
      values++
      // The rest is a command for the host.
      if (command.strict === false) optionsOver = true
    }
  }
  return { given, values, pending, optionsOver }
}

function wantedOf(command: Command, words: readonly string[], current: string): Wanted {
  const { given, values, pending, optionsOver } = readArguments(command, words)
  if (pending !== undefined) return valueOf(command, pending, '', current)
  if (!optionsOver && current.startsWith('-') && current !== '-') {
    const equals = current.indexOf('=')
    if (current.startsWith('--') && equals !== -1) {
      const flag = flagOf(command, current.slice(0, equals))
      if (flag?.type !== 'option') return nothing
      return valueOf(command, flag, current.slice(0, equals + 1), current.slice(equals + 1))
    }
    const holder = current.startsWith('--') ? undefined : attached(command, current)
    if (holder !== undefined && holder.at < current.length)
      return valueOf(command, holder.flag, current.slice(0, holder.at), current.slice(holder.at))
  }
  if (!optionsOver && current.startsWith('-')) return { is: 'option', command, given }
  const args = Object.values(command.args).filter((arg) => arg.hidden !== true)
  const last = args.at(-1)
  const arg = args[values] ?? (last?.multiple === true ? last : undefined)
  if (arg !== undefined)
    return { is: 'value', of: arg.options ?? kindOf(command, arg.name) ?? 'free', lead: '' }
  // No argument is left, so offer options; but after a target, expect the command for the host.
  const isOption = !optionsOver && current === '' && (command.strict !== false || given.size === 0)
  return isOption ? { is: 'option', command, given } : nothing
}

/** Determines what may follow these words; `current` is the word under the cursor, up to the cursor. */
export function wantedAtCursor(manifest: Manifest, words: readonly string[], current: string): Wanted {
  const isGlobal = (words[0] ?? current).startsWith('-')
  const flags = isGlobal ? globalFlags(manifest.commands) : {}
  const { globals, words: typed, pending } = splitGlobals(flags, words)
  if (pending !== undefined || (typed.length === 0 && current.startsWith('-')))
    return wantedOf({ id: '', flags, args: {} }, words, current)
  const named = typed[0] === 'help' ? typed.slice(1) : typed
  const found = findCommand(manifest.commands, named)
  if (found !== undefined)
    return typed === named ? wantedOf(found.command, [...globals, ...found.rest], current) : nothing
  return isTopic(manifest, named) ? { is: 'command', words: typed } : nothing
}
