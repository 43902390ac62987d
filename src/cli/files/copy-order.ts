import { basename } from 'node:path'
import { invalid, RsmError } from '../../core/errors.ts'
import type { Copy } from '../../core/protocol/http/files.ts'
import { writtenPathFault } from '../../core/tasks/remote-path.ts'
import { given, ifGiven } from '../flags/checks.ts'
import { type CopyFlags, type CopyHow, parseMode, parseOwner } from '../flags/copy.ts'

/** Largest text whose differences are shown, in bytes (contract §13). */
const longestDiff = 1024 * 1024

/** A path on hosts; `selector` is empty if options select the hosts. */
interface RemotePath {
  readonly selector: string
  readonly path: string
}

export interface ToHosts {
  readonly sources: readonly string[]
  readonly to: RemotePath
}

export interface FromHosts {
  readonly from: RemotePath
  readonly target: string
}

/** Errors: `usage`. */
export function readArguments(words: readonly string[]): ToHosts | FromHosts {
  const target = words.at(-1) ?? ''
  const sources = words.slice(0, -1)
  if (words.includes(''))
    throw new RsmError('usage', 'an argument is empty', { hint: 'is a variable not set?' })
  const to = remoteOf(target)
  if (sources.length === 0)
    throw new RsmError('usage', to === undefined ? 'missing destination' : 'missing source or destination', {
      hint: "rsm cp FILE 'SELECTOR:/PATH', or from hosts: rsm cp 'SELECTOR:/PATH' DIR",
    })
  const remote = sources.find((source) => remoteOf(source) !== undefined)
  if (to !== undefined) {
    if (remote === undefined) return { sources, to }
    throw new RsmError('usage', `cannot copy from hosts to hosts: ${remote} and ${target}`)
  }
  const from = remoteOf(sources[0] ?? '')
  if (from !== undefined && sources.length === 1) {
    if (target !== '-') return { from, target }
    throw new RsmError('usage', 'a copy from hosts goes to a file or a directory, not to stdout', {
      hint: `name one, like ./- for a file called -; to show text: rsm exec -w HOST -- cat ${from.path}`,
    })
  }
  if (remote !== undefined)
    throw new RsmError('usage', `one path is copied from hosts at a time, not ${sources.join(' and ')}`)
  throw new RsmError('usage', `no path on hosts: ${target} is a local path`, {
    hint: `write SELECTOR:/PATH, or with -w, -g, -t or -a only :/PATH`,
  })
}

/** Undefined for a local path: a remote one has `:/` with no `/` before (contract §13). Errors: `usage`. */
function remoteOf(argument: string): RemotePath | undefined {
  const slash = argument.indexOf('/')
  const before = slash === -1 ? argument : argument.slice(0, slash)
  if (!before.includes(':')) return undefined
  if (before.endsWith(':') && slash !== -1)
    return { selector: before.slice(0, -1), path: argument.slice(slash) }
  const [selector = '', ...rest] = argument.split(':')
  throw new RsmError('usage', `a path on hosts begins with a slash: ${argument}`, {
    hint: `write ${selector}:/${rest.join(':')} for a path on hosts, or ./${argument} for a local file`,
  })
}

/** Errors: `invalid`, naming `field`. */
export function checkPath(field: string, path: string, kind: Copy['kind']): void {
  const message = writtenPathFault(path, kind)
  if (message !== null) throw invalid([{ field, message }])
}

/** Base name of a local path; empty if only the content is meant. */
export const nameOf = (source: string): string =>
  source.endsWith('/') || /^(?:.*\/)?\.{1,2}$/.test(source) ? '' : basename(source)

/** Remote path of a copy; a copy into a directory keeps its own name. Errors: `invalid`, `usage`. */
export function pathOnHosts(path: string, source: string, kind: Copy['kind']): string {
  if (path.endsWith('/') && source === '-')
    throw new RsmError('usage', `${path} is a directory, and stdin has no name: add the name of the file`)
  // A percent sign in the path of a copy is special.
  const whole = path.endsWith('/') ? path + nameOf(source).replaceAll('%', '%%') : path
  checkPath('copy.path', whole, kind)
  return whole
}

/** Errors: `usage`. */
export function readCopyOptions(flags: CopyHow): Pick<Copy, 'mode' | 'owner' | 'group' | 'backup' | 'check'> {
  const { backup, diff, secret } = flags
  if (diff && secret)
    throw new RsmError('usage', '--diff would show what is secret', { hint: 'use --dry-run' })
  return {
    ...given({ mode: ifGiven(flags.mode, parseMode) }),
    ...ifGiven(flags.owner, parseOwner),
    ...(backup && { backup }),
    ...(diff ? { check: 'DIFF' as const } : flags['dry-run'] && { check: 'CHANGED' as const }),
  }
}

/** Refuses options without effect in this direction, because the user relies on them. Errors: `usage`. */
export function refuseOptions(
  flags: Partial<CopyFlags>,
  names: readonly (keyof CopyFlags)[],
  direction: 'to' | 'from',
): void {
  const useless = names.find((name) => flags[name] !== undefined && flags[name] !== false)
  if (useless !== undefined) throw new RsmError('usage', `--${useless} is for copies ${direction} hosts`)
}

/** Fails before uploading a large file. Errors: `usage`. */
export function refuseLongDiff(name: string, size: number | null): void {
  if (size !== null && size > longestDiff)
    throw new RsmError('usage', `--diff is for text up to 1 MiB, and ${name} has ${size} bytes`, {
      hint: 'use --dry-run',
    })
}
