import { RsmError } from '../../core/errors.ts'

/** A place on hosts; `selector` is empty where options say which. */
export interface RemotePath {
  readonly selector: string
  readonly path: string
}

/** An argument of `cp`: on hosts where it holds `:/` with no `/` before it, else local (contract §13). Errors: `usage`. */
export function remoteOf(argument: string): RemotePath | undefined {
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

export interface ToHosts {
  readonly sources: readonly string[]
  readonly to: RemotePath
}

export interface FromHosts {
  readonly from: RemotePath
  readonly target: string
}

/** What `cp` is to do. Errors: `usage`. */
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
