import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { FlagInput } from '@oclif/core/interfaces'
import { Misuse } from '../command/usage.ts'
import { mapEach } from './checks.ts'

type Flag = FlagInput[string]
/** Names of flags, and the variables that they took their values from. */
export type Variables = Map<string, string>

const yes = new Set(['1', 'true', 'y', 'yes', 'on'])
const no = new Set(['0', 'false', 'n', 'no', 'off'])

/** The same flags, each with the variable of its name: `--data-dir` is `RSM_DATA_DIR`, unless it says another. */
export function withVariables<F extends FlagInput>(prefix: string, flags: F): F {
  const variable = (name: string) => prefix + name.toUpperCase().replaceAll('-', '_')
  return mapEach(flags, (flag, name) => ({ env: variable(name), ...flag }))
}

/**
 * The same flags, whose values may come from the environment as they may be typed. oclif hands on the text of a variable as it
 * is, also for a flag that may be repeated, where a list is expected: here it becomes one, at its commas. A blank variable is
 * none, and space around a value is none of it: files of variables bring line ends. `variables` hears which flags took their
 * value from which variable.
 */
export function fromEnvironment<F extends FlagInput>(flags: F, variables: Variables): F {
  return mapEach(flags, (flag, name) => settable(name, flag, variables))
}

function settable(name: string, flag: Flag, variables: Variables): Flag {
  if (flag.env === undefined) return flag
  const variable = sourceOf(flag.env)
  const { env: _, ...rest } = flag
  const text = process.env[variable]?.trim() ?? ''
  if (text === '') return rest
  if (flag.type === 'boolean') {
    // oclif reads variables of booleans without calling `parse`.
    const fallback = async (): Promise<boolean> => {
      variables.set(name, variable)
      return truthOf(name, text)
    }
    return { ...rest, default: fallback }
  }
  const { parse: parseOne, multiple, delimiter } = flag
  const parse: typeof parseOne = async (typed, context, options) => {
    // What was typed has a token of the command line.
    if (context.token !== undefined) return parseOne(typed, context, options)
    variables.set(name, variable)
    if (multiple !== true) return parseOne(text, context, options)
    return Promise.all(words(text, delimiter ?? ',').map((word) => parseOne(word, context, options)))
  }
  return { ...flag, env: variable, parse }
}

/** RSM_HOST is the previous name of RSM_LISTEN_HOST. Ignored in a script, where it names the script's host. */
function sourceOf(variable: string): string {
  const isSet = (name: string) => (process.env[name] ?? '').trim() !== ''
  const isOldName = variable === 'RSM_LISTEN_HOST' && !isSet(variable) && !isSet('RSM_TASK_ID')
  return isOldName ? 'RSM_HOST' : variable
}

/** A word that is neither yes nor no must not mean no: RSM_AGENT_NO_TERMINAL=ja would open terminals. */
function truthOf(name: string, text: string): boolean {
  const word = text.toLowerCase()
  if (yes.has(word)) return true
  if (no.has(word)) return false
  throw new Misuse(`--${name} takes yes or no (1 or 0, true or false, on or off), not ${text}`)
}

function words(text: string, delimiter: string): string[] {
  return text
    .split(delimiter)
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

/**
 * The value of a variable that holds a secret; undefined where it is not set or empty. No process that is started from
 * now on inherits it, and on Linux /proc/PID/environ of this one no longer shows it.
 */
export function takeVariable(name: string): string | undefined {
  const value = process.env[name] || undefined
  delete process.env[name]
  try {
    overwrite(name)
  } catch {
    // Without /proc, or where it refuses this, the user of this process and root can still read it there.
  }
  return value
}

/** Writes zeros over the copy that the kernel shows: the process was started with it, and libc leaves it as it is. */
function overwrite(name: string): void {
  const block = readFileSync('/proc/self/environ')
  const at = Buffer.concat([Buffer.of(0), block]).indexOf(`\0${name}=`)
  // Field 50 of proc(5); those behind the name of the program, which may hold spaces, begin with the third.
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1)?.split(' ') ?? []
  const start = Number(fields[50 - 3])
  if (at < 0 || !(start > 0)) return
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    writeSync(memory, Buffer.alloc(block.indexOf(0, at) - at), 0, null, start + at)
  } finally {
    closeSync(memory)
  }
}
