import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { FlagInput } from '@oclif/core/interfaces'
import { Misuse } from '../command/usage.ts'
import { mapEach } from './checks.ts'

type Flag = FlagInput[string]
/** Variables that set flags, by flag name. */
export type Variables = Map<string, string>

const yes = new Set(['1', 'true', 'y', 'yes', 'on'])
const no = new Set(['0', 'false', 'n', 'no', 'off'])

/** Adds a variable to each flag that declares none: `RSM_DATA_DIR` for `--data-dir`. */
export function withVariables<F extends FlagInput>(prefix: string, flags: F): F {
  const variable = (name: string) => prefix + name.toUpperCase().replaceAll('-', '_')
  return mapEach(flags, (flag, name) => ({ env: variable(name), ...flag }))
}

/**
 * Makes variables work like typed flags. For repeatable flags, splits the value at commas, because oclif passes it on unsplit.
 * Trims values, because environment files may contain line ends; ignores blank ones. Adds to `variables` each flag that a
 * variable set.
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
    // oclif does not call `parse` for variables of booleans.
    const fallback = async (): Promise<boolean> => {
      variables.set(name, variable)
      return truthOf(name, text)
    }
    return { ...rest, default: fallback }
  }
  const { parse: parseOne, multiple, delimiter } = flag
  const parse: typeof parseOne = async (typed, context, options) => {
    // Only typed values have a token.
    if (context.token !== undefined) return parseOne(typed, context, options)
    variables.set(name, variable)
    if (multiple !== true) return parseOne(text, context, options)
    return Promise.all(words(text, delimiter ?? ',').map((word) => parseOne(word, context, options)))
  }
  return { ...flag, env: variable, parse }
}

/** Accepts RSM_HOST, the previous name of RSM_LISTEN_HOST, except in a script, where it holds the script's host. */
function sourceOf(variable: string): string {
  const isSet = (name: string) => (process.env[name] ?? '').trim() !== ''
  const isOldName = variable === 'RSM_LISTEN_HOST' && !isSet(variable) && !isSet('RSM_TASK_ID')
  return isOldName ? 'RSM_HOST' : variable
}

/** Rejects other words instead of reading them as no, because RSM_AGENT_NO_TERMINAL=ja would allow terminals. */
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
 * Reads and removes a variable with a secret; undefined if unset or empty. Child processes do not inherit it, and on Linux
 * /proc/PID/environ of this process no longer shows it.
 */
export function takeVariable(name: string): string | undefined {
  const value = process.env[name] || undefined
  delete process.env[name]
  try {
    overwrite(name)
  } catch {
    // Without access to /proc/self, this user and root can still read it there.
  }
  return value
}

/** Zeroes the initial environment, which the kernel shows and libc never changes. */
function overwrite(name: string): void {
  const block = readFileSync('/proc/self/environ')
  const at = Buffer.concat([Buffer.of(0), block]).indexOf(`\0${name}=`)
  // Field 50 of proc_pid_stat(5) is env_start. The split skips fields 1 and 2, because a program name may contain spaces.
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
