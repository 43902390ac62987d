import type { FlagShape } from './argv.ts'

const deepest = 3

type Flags<F extends FlagShape> = Readonly<Record<string, F>>

/** The global flags, which may come before the command. Those that choose a server are missing in commands of this machine. */
export function globalFlags<F extends FlagShape>(commands: Readonly<Record<string, { flags: Flags<F> }>>) {
  const all = Object.values(commands).flatMap(({ flags }) => Object.entries(flags))
  return Object.fromEntries(all.filter(([, flag]) => flag.helpGroup === 'GLOBAL'))
}

/**
 * Splits a command line before its command, at the first word that is not a global flag. `names`: the flags before it;
 * `pending`: the flag whose value is the next word.
 */
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

/** The longest run of leading words that names a command; `rest` follows them. */
export function findCommand<C>(commands: Readonly<Record<string, C>>, argv: readonly string[]) {
  for (let count = Math.min(argv.length, deepest); count > 0; count--) {
    const words = argv.slice(0, count)
    const id = words.join(':')
    const command = Object.hasOwn(commands, id) ? commands[id] : undefined
    if (command !== undefined) return { id, words, command, rest: argv.slice(count) }
  }
  return undefined
}
