import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { RsmError } from '../../core/errors.ts'

/** Words of the longest command name. */
const mostWords = 3

/** Properties of a flag that manifest and command classes share. */
export interface FlagShape {
  readonly type: string
  readonly char?: string | undefined
  readonly aliases?: readonly string[] | undefined
  readonly charAliases?: readonly string[] | undefined
  readonly helpGroup?: string | undefined
}

type Flags<F extends FlagShape> = Readonly<Record<string, F>>

/**
 * Throws `usage` for arguments that are not UTF-8: Node replaces their bytes with U+FFFD, so a different command would run.
 * A typed U+FFFD passes, because the kernel's copy of the arguments is valid UTF-8.
 */
export function refuseForeignBytes(argv: readonly string[]): void {
  const word = argv.find((each) => each.includes('\ufffd'))
  if (word === undefined || isUtf8(readFileSync('/proc/self/cmdline'))) return
  throw new RsmError('usage', `not UTF-8: ${word}`, { hint: 'type it in UTF-8, or pass it in a file' })
}

/**
 * Splits a command line whose options end at the first argument, like ssh: `-w web1 ls -l` has the option `-w web1` and the
 * words `ls -l`. A `--` before them ends the options and belongs to neither.
 */
export function splitOptions(
  argv: readonly string[],
  flags: Readonly<Record<string, FlagShape>>,
): { options: string[]; words: string[] } {
  const valued = new Set<string>()
  for (const [name, flag] of Object.entries(flags)) {
    if (flag.type !== 'option') continue
    for (const long of [name, ...(flag.aliases ?? [])])
      valued.add(long.length === 1 ? `-${long}` : `--${long}`)
    for (const short of [flag.char, ...(flag.charAliases ?? [])])
      if (short !== undefined) valued.add(`-${short}`)
  }
  /** Whether the next word is this option's value: for `-w x` and `-qw x`, but not `-wx` or `--hosts=x`. */
  const takesNext = (word: string): boolean => {
    if (word.startsWith('--')) return valued.has(word)
    const at = word
      .slice(1)
      .split('')
      .findIndex((letter) => valued.has(`-${letter}`))
    return at !== -1 && at === word.length - 2
  }
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word === '--') return { options: argv.slice(0, at), words: argv.slice(at + 1) }
    if (!word.startsWith('-') || word === '-') return { options: argv.slice(0, at), words: argv.slice(at) }
    if (takesNext(word)) at++
  }
  return { options: [...argv], words: [] }
}

/** The global flags, which may come before the command; gathered from all commands, because local ones lack some. */
export function globalFlags<F extends FlagShape>(commands: Readonly<Record<string, { flags: Flags<F> }>>) {
  const all = Object.values(commands).flatMap(({ flags }) => Object.entries(flags))
  return Object.fromEntries(all.filter(([, flag]) => flag.helpGroup === 'GLOBAL'))
}

/** Splits off leading global flags. `names`: the flags found; `pending`: a last flag whose value is missing. */
export function splitGlobals<F extends FlagShape>(flags: Flags<F>, argv: readonly string[]) {
  const names: string[] = []
  let pending: F | undefined
  let at = 0
  for (; at < argv.length; at++) {
    const word = argv[at] ?? ''
    const typed = word.replace(/=.*$/s, '')
    const [name, flag] =
      Object.entries(flags).find(([long, { char }]) => typed === `--${long}` || word === `-${char}`) ?? []
    if (pending !== undefined) pending = undefined
    else if (name === undefined || flag === undefined) break
    else {
      names.push(name)
      if (flag.type === 'option' && typed === word) pending = flag
    }
  }
  return { globals: argv.slice(0, at), words: argv.slice(at), names, pending }
}

/** The command named by the longest run of leading words; `rest` is the remaining words. */
export function findCommand<C>(commands: Readonly<Record<string, C>>, argv: readonly string[]) {
  for (let count = Math.min(argv.length, mostWords); count > 0; count--) {
    const words = argv.slice(0, count)
    const id = words.join(':')
    const command = Object.hasOwn(commands, id) ? commands[id] : undefined
    if (command !== undefined) return { id, words, command, rest: argv.slice(count) }
  }
  return undefined
}
