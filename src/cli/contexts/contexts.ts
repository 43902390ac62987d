import { join } from 'node:path'
import { normalUrl } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import { unknownName } from '../../core/text/nearest.ts'
import { readCertificates } from '../../disk/certificates.ts'
import { readSecretFile } from '../input/named-path.ts'
import { baseDirectory, PrivateFiles } from './private-files.ts'

/** Flags that choose a server; they take precedence over the environment. */
export interface ServerChoice {
  readonly url?: string | undefined
  readonly context?: string | undefined
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  readonly tlsFingerprint?: string | undefined
}

export interface ChosenServer {
  readonly url: string
  readonly token: string | undefined
  readonly caFile: string | undefined
  readonly tlsFingerprint: string | undefined
  readonly context: string | undefined
  /** File of the token, if an option or variable named one. */
  readonly tokenFile: string | undefined
}

interface Context {
  readonly url: string
  readonly username?: string
  readonly caFile?: string
  readonly tlsFingerprint?: string
  /** Data directory of the quickstart that created the context. */
  readonly quickstart?: string
}

interface ConfigFile {
  current: string | null
  contexts: Record<string, Context>
}

/** A stored token and the one URL that it may be sent to (contract §9). */
interface StoredToken {
  readonly url: string
  readonly token: string
}

/** Throws `usage` for a token invalid in a header, because it would fail deep inside a request. */
export function checkedToken(token: string): string {
  if (/^[!-~]+$/.test(token)) return token
  throw new RsmError(
    'usage',
    'the token is malformed: it contains a space, a line break or a non-ASCII character',
    {
      hint: 'check RSM_TOKEN, RSM_TOKEN_FILE and --token-file',
    },
  )
}

/** Contexts and tokens on disk: a directory of mode 0700 with two files of mode 0600. */
export class Contexts {
  readonly directory: string
  readonly #files: PrivateFiles

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.directory = join(baseDirectory('CONFIG', env), 'rsm')
    this.#files = new PrivateFiles(this.directory)
  }

  list(): ConfigFile {
    return this.#files.read('config.json', readConfig)
  }

  /** Context of this user on this server, preferring the current one; else a new name after the server's host. */
  nameFor(url: string, username: string): string {
    const { contexts, current } = this.list()
    const names = [...(current === null ? [] : [current]), ...Object.keys(contexts)]
    const known = (user: string | undefined) =>
      names.find((name) => {
        const { [name]: context } = contexts
        return context?.url === url && context.username === user && context.quickstart === undefined
      })
    const { host } = new URL(url)
    return (
      known(username) ?? known(undefined) ?? this.#free(host, `${host}-${username}`, `${url}-${username}`)
    )
  }

  /** Context of the quickstart in this directory; else a new name. */
  nameForQuickstart(directory: string): string {
    const known = Object.entries(this.list().contexts).find(([, each]) => each.quickstart === directory)
    return known?.[0] ?? this.#free('quickstart')
  }

  #free(...names: string[]): string {
    const { contexts } = this.list()
    const last = names.at(-1) ?? ''
    const isFree = (name: string) => contexts[name] === undefined
    for (let at = 2; !names.some(isFree); at++) names.push(`${last}-${at}`)
    return names.find(isFree) ?? last
  }

  /** Throws `conflict` so that a mistake cannot replace the token of another server or user. */
  refuseForeign(name: string, url: string, username?: string): void {
    const { [name]: known } = this.list().contexts
    if (known === undefined) return
    const isUsers =
      username === undefined || username.toLowerCase() === (known.username ?? username).toLowerCase()
    if (known.url === url && isUsers) return
    const owner = known.url === url ? `logged in as ${known.username}` : known.url
    throw new RsmError('conflict', `context ${name} is already ${owner}`, {
      hint: `choose another with --context NAME, or forget it: rsm context remove ${name}`,
    })
  }

  /** Checks before a login that it can be stored. Errors: `unavailable`. */
  prepare(): void {
    this.#files.prepare()
  }

  /**
   * Stores a context and its token, and makes it current unless `use` is false. Returns its name. If `named` is a function, calls
   * it under the lock, so that two logins cannot choose the same new name.
   */
  save(named: string | (() => string), context: Context, token: string | undefined, use = true): string {
    return this.#files.exclusively(() => {
      const name = typeof named === 'string' ? named : named()
      const file = this.list()
      file.contexts[name] = context
      if (use || file.current === null) file.current = name
      this.#files.write('config.json', file)
      const tokens = this.#tokens()
      if (token === undefined) delete tokens[name]
      else tokens[name] = { url: context.url, token }
      this.#files.write('tokens.json', tokens)
      return name
    })
  }

  use(name: string): Context {
    // Report an unknown name even if the directory is not writable.
    this.#named(this.list(), name)
    return this.#files.exclusively(() => {
      const file = this.list()
      const context = this.#named(file, name)
      this.#files.write('config.json', { ...file, current: name })
      return context
    })
  }

  remove(name: string): void {
    this.#named(this.list(), name)
    this.#files.exclusively(() => {
      const file = this.list()
      this.#named(file, name)
      delete file.contexts[name]
      if (file.current === name) file.current = null
      this.#files.write('config.json', file)
      this.#forget(name)
    })
  }

  hasToken(name: string, token: string): boolean {
    return this.#tokens()[name]?.token === token
  }

  renew(name: string, token: string): void {
    this.#files.exclusively(() => {
      const tokens = this.#tokens()
      const { url } = this.#named(this.list(), name)
      this.#files.write('tokens.json', { ...tokens, [name]: { url, token } })
    })
  }

  forget(name: string): void {
    if (this.#tokens()[name] !== undefined) this.#files.exclusively(() => this.#forget(name))
  }

  /**
   * Chooses the server from `--url`, `--context`, RSM_URL, RSM_CONTEXT, then the current context; there is no default
   * (contract §9). With `isLogin`, several contexts for a URL are accepted, because a login needs only address and trust.
   */
  choose(
    choice: ServerChoice & { readonly isLogin?: boolean },
    env: NodeJS.ProcessEnv = process.env,
  ): ChosenServer {
    const file = this.list()
    const fromEnv = (name: string) => (env[name] === '' ? undefined : env[name])
    const asked =
      choice.url !== undefined || choice.context !== undefined
        ? choice
        : { url: fromEnv('RSM_URL'), context: fromEnv('RSM_CONTEXT') }
    let name = asked.url === undefined ? (asked.context ?? file.current ?? undefined) : asked.context
    let strangers: readonly string[] = []
    let url: string
    if (asked.url !== undefined) {
      url = normalUrl(asked.url)
      const known = (each: string | null | undefined): each is string =>
        typeof each === 'string' && file.contexts[each]?.url === url
      const named = [name, file.current].find(known)
      if (named === undefined) strangers = Object.keys(file.contexts).filter(known)
      name = named ?? strangers[0]
    } else if (name === undefined) {
      throw new RsmError('unauthenticated', 'no server is configured yet', {
        hint: 'rsm login URL, or try it on this machine: rsm quickstart',
      })
    } else url = this.#named(file, name).url
    const stored = name === undefined ? undefined : this.#tokens()[name]
    const tokenFile =
      choice.tokenFile ?? (fromEnv('RSM_TOKEN') === undefined ? fromEnv('RSM_TOKEN_FILE') : undefined)
    const users = new Set(strangers.map((each) => file.contexts[each]?.username))
    if (users.size > 1 && tokenFile === undefined && !fromEnv('RSM_TOKEN') && choice.isLogin !== true)
      throw new RsmError('usage', `${url} is in contexts of several users: ${strangers.join(', ')}`, {
        hint: `choose one: --context ${strangers[0]}, or rsm context use ${strangers[0]}`,
      })
    const token =
      tokenFile === undefined
        ? (fromEnv('RSM_TOKEN') ?? (stored?.url === url ? stored.token : undefined))
        : readSecretFile(tokenFile, choice.tokenFile === undefined ? 'RSM_TOKEN_FILE' : '--token-file')
    const askedCaFile = choice.caFile ?? fromEnv('RSM_CA_FILE')
    // A named file must be readable, even if this server does not need it.
    if (askedCaFile !== undefined) readCertificates(askedCaFile)
    const caFile = askedCaFile ?? (name === undefined ? undefined : file.contexts[name]?.caFile)
    const tlsFingerprint =
      choice.tlsFingerprint ?? (name === undefined ? undefined : file.contexts[name]?.tlsFingerprint)
    const checked = token === undefined ? undefined : checkedToken(token)
    return { url, token: checked, caFile, tlsFingerprint, context: name, tokenFile }
  }

  #forget(name: string): void {
    const tokens = this.#tokens()
    delete tokens[name]
    this.#files.write('tokens.json', tokens)
  }

  #named(file: ConfigFile, name: string): Context {
    const context = file.contexts[name]
    if (context !== undefined) return context
    throw new RsmError('not_found', unknownName('context', name, Object.keys(file.contexts)), {
      hint: 'rsm context list',
    })
  }

  #tokens() {
    return this.#files.read('tokens.json', readTokens)
  }
}

/** Parses config.json; `undefined` if there is none. Errors: the invalid value and its place. */
function readConfig(value: unknown): ConfigFile {
  const { current, contexts } = objectAt(value ?? {}, 'it')
  if (current !== undefined && current !== null && !isText(current)) throw new Misshapen('current', 'a name')
  return { current: current ?? null, contexts: recordAt(contexts ?? {}, 'contexts', contextAt) }
}

function readTokens(value: unknown): Record<string, StoredToken> {
  return recordAt(value ?? {}, '', tokenAt)
}

function contextAt(value: unknown, where: string): Context {
  const context = objectAt(value, where)
  const { url } = context
  if (!isText(url) || !URL.canParse(url) || !/^https?:/i.test(url))
    throw new Misshapen(`${where}.url`, 'an http or https URL')
  for (const name of ['username', 'caFile', 'tlsFingerprint', 'quickstart'])
    if (context[name] !== undefined && !isText(context[name])) throw new Misshapen(`${where}.${name}`, 'text')
  return context as unknown as Context
}

function tokenAt(value: unknown, where: string): StoredToken {
  const { url, token } = objectAt(value, where)
  if (!isText(url) || !isText(token)) throw new Misshapen(where, 'a token with its url')
  return { url, token }
}

/** Reads a record by name. Its prototype is null, so that `constructor` and `__proto__` are valid names. */
function recordAt<T>(
  value: unknown,
  where: string,
  read: (value: unknown, where: string) => T,
): Record<string, T> {
  const all = Object.create(null) as Record<string, T>
  for (const [name, one] of Object.entries(objectAt(value, where || 'it')))
    all[name] = read(one, where === '' ? name : `${where}.${name}`)
  return all
}

function objectAt(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw new Misshapen(where, 'an object')
}

const isText = (value: unknown): value is string => typeof value === 'string'

class Misshapen extends Error {
  constructor(where: string, expected: string) {
    super(`${where} is not ${expected}`)
  }
}
