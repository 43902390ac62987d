import { join } from 'node:path'
import { normalUrl } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import { unknownName } from '../../core/text/nearest.ts'
import { readCertificates } from '../../disk/certificates.ts'
import { readSecretFile } from '../input/named-path.ts'
import { type ConfigFile, type Context, readConfig, readTokens } from './context-files.ts'
import { baseDirectory, PrivateFiles } from './private-files.ts'

/** How a command line names its server; flags win over the environment. */
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
  /** The file that the token was read from, where an option or a variable named one. */
  readonly tokenFile: string | undefined
}

/** Refuses a token that no header can hold, which would fail deep inside a request. Errors: `usage`. */
export function checkedToken(token: string): string {
  if (/^[!-~]+$/.test(token)) return token
  throw new RsmError(
    'usage',
    'the token is malformed: it contains a space, a line end or a non-ASCII character',
    {
      hint: 'see RSM_TOKEN, RSM_TOKEN_FILE and --token-file',
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

  /** The context of this user at this server, the current one first; else a new name, after its host. */
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

  /** The context of the quickstart with this data; else a new name. */
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

  /** A slip must not replace the token of another server or user. Errors: `conflict`. */
  refuseForeign(name: string, url: string, username?: string): void {
    const { [name]: known } = this.list().contexts
    if (known === undefined) return
    const isUsers =
      username === undefined || username.toLowerCase() === (known.username ?? username).toLowerCase()
    if (known.url === url && isUsers) return
    const owner = known.url === url ? `logged in as ${known.username}` : known.url
    throw new RsmError('conflict', `context ${name} is ${owner} already`, {
      hint: `choose another with --context NAME, or forget it: rsm context remove ${name}`,
    })
  }

  /** Checks that a login can be stored, before somebody logs in. Errors: `unavailable`. */
  prepare(): void {
    this.#files.prepare()
  }

  /**
   * Stores a context and its token, and makes it the current one unless told not to. Answers its name; a function chooses it
   * under the lock, so that no two logins choose the same new name.
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
    // An unknown name is reported even where nothing can be written.
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
   * The server that a command speaks to: `--url`, `--context`, RSM_URL, RSM_CONTEXT, the current context, in this
   * order. There is no default server (contract §9). A login may not care whose context it gets address and trust from.
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
      throw new RsmError('unauthenticated', 'no server is known yet', {
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
    // A file that was named must be readable, even if this server needs none.
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
