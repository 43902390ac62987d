import { Command } from '@oclif/core/command'
import { boolean, string } from '@oclif/core/flags'
import type { FlagInput, Input, ParserOutput } from '@oclif/core/interfaces'
import { type Client, openClient } from '../../client/client.ts'
import { type ErrorCode, RsmError } from '../../core/errors.ts'
import { type ChosenServer, Contexts } from '../contexts/contexts.ts'
import { alone, anyCase, checkTogether } from '../flags/checks.ts'
import { fromEnvironment, type Variables } from '../flags/environment.ts'
import type { FlagsOf } from '../flags/given.ts'
import { isReadableByAll } from '../input/named-path.ts'
import { jsonText, sanitize, sanitizeLine, sanitizePainted, shellWord } from '../text/sanitize.ts'
import { isWatched } from '../text/screen.ts'
import { blameVariables } from './failure.ts'

const helpGroup = 'GLOBAL'

const json = boolean({ helpGroup, description: 'print only the data, as JSON' })
const displayFlags = {
  quiet: boolean({ helpGroup, char: 'q', description: 'print only errors' }),
  utc: boolean({ helpGroup, description: 'show times in UTC' }),
  'no-pager': boolean({ helpGroup, description: 'do not send long lists to $PAGER' }),
}

/** The global flags (contract §9). */
const globalFlags = {
  json,
  url: string({ helpGroup, helpValue: 'URL', description: 'server to speak to (RSM_URL)' }),
  context: string({ helpGroup, helpValue: 'NAME', description: 'stored server to speak to (RSM_CONTEXT)' }),
  'token-file': string({
    helpGroup,
    helpValue: 'FILE',
    description: 'file with a token (RSM_TOKEN_FILE, RSM_TOKEN)',
  }),
  'ca-file': string({
    helpGroup,
    helpValue: 'FILE',
    description: 'extra certificates to trust (RSM_CA_FILE)',
  }),
  'tls-fingerprint': string({
    helpGroup,
    helpValue: 'PIN',
    description: 'trust only this key or certificate of the server',
  }),
  ...displayFlags,
}

type GlobalFlags = Partial<FlagsOf<typeof globalFlags>> & {
  readonly json: boolean
  readonly quiet: boolean
  readonly utc: boolean
}

type Values = Record<string, unknown>

/** Styles are kept on a terminal only. */
const clean = (text: string) => (process.stdout.isTTY ? sanitizePainted(text) : sanitize(text))

/** A command parses, calls once, renders, and returns the data, which `--json` prints. */
export abstract class BaseCommand extends Command {
  static override baseFlags = globalFlags

  globals: GlobalFlags = { json: false, quiet: false, utc: false }
  /** The flags whose values came from variables. */
  protected readonly variables: Variables = new Map()

  protected override async parse<F extends Values, B extends Values, A extends Values>(
    options: Input<F, B, A>,
    argv?: string[],
  ): Promise<ParserOutput<F, B, A>> {
    // Base flags are inherited, so that a spread copy would lose them.
    const inherited = options.baseFlags === undefined ? {} : { baseFlags: options.baseFlags }
    const declared = options.flags ?? ({} as FlagInput<F>)
    const flags = alone(fromEnvironment(anyCase(declared), this.variables))
    const args = options.args === undefined ? {} : { args: anyCase(options.args, () => '') }
    const parsed = await super.parse({ ...options, ...inherited, ...args, flags }, argv)
    checkTogether(declared, parsed)
    this.globals = { ...this.globals, ...(parsed.flags as Partial<GlobalFlags>) }
    return parsed
  }

  /** Printed for people; with `--json` only the data is printed. A server chooses the names in it, and may be malicious. */
  print(text: string): void {
    if (!this.globals.json) process.stdout.write(`${clean(text)}\n`)
  }

  /** Says in one line that something is done, unless `--quiet`. Data that was asked for goes through `print`. */
  done(text: string): void {
    if (!this.globals.quiet) this.print(sanitizeLine(text))
  }

  /** As `print`; text longer than the screen goes through the pager (contract §9: only on a terminal). */
  async printLong(text: string): Promise<void> {
    const { isTTY, rows, columns } = process.stdout
    const mayPage = isTTY && !this.globals.json && this.globals['no-pager'] !== true
    // Some terminals do not report a size.
    if (!mayPage || !rows || !columns) return this.print(text)
    const { isLongerThan, pagerCommand, showInPager } = await import('./pager.ts')
    const pager = pagerCommand(process.env)
    if (pager === undefined || !isLongerThan(text, { rows, columns })) return this.print(text)
    if (!(await showInPager(`${clean(text)}\n`, pager))) this.print(text)
  }

  /** A next step, for people who watch. */
  hint(text: string): void {
    if (!this.globals.json && !this.globals.quiet && isWatched()) process.stderr.write(`${sanitize(text)}\n`)
  }

  notice(text: string): void {
    if (!this.globals.quiet) process.stderr.write(`rsm: ${sanitizeLine(text)}\n`)
  }

  protected readonly warning = (text: string): void => this.notice(`warning: ${text}`)

  protected server(isLogin = false): ChosenServer {
    const { url, context } = this.globals
    return new Contexts().choose({
      url,
      context,
      tokenFile: this.globals['token-file'],
      caFile: this.globals['ca-file'],
      tlsFingerprint: this.globals['tls-fingerprint'],
      isLogin,
    })
  }

  /** A token is as good as a password. In CI secrets are mounted as they are, and nobody can change that. */
  protected warnOfReadable(path: string | undefined): void {
    if (path !== undefined && (process.env['CI'] ?? '') === '' && isReadableByAll(path))
      this.warning(`every user of this machine can read the token: chmod 600 ${shellWord(path)}`)
  }

  /** The chosen server as people know it: `staging (https://rsm.example.org)`. */
  serverName(): string {
    const { url, context } = this.server()
    return context === undefined || url.includes(context) ? url : `${context} (${url})`
  }

  /** A client of the chosen server; without a token nothing is sent and the error says how to get one. */
  protected async client(): Promise<Client> {
    const server = this.server()
    if (server.token === undefined)
      throw new RsmError('unauthenticated', `not logged in to ${server.url}`, {
        hint: `rsm login ${server.url}, or set RSM_TOKEN`,
      })
    this.warnOfReadable(server.tokenFile)
    const refused = ({ message }: RsmError) => {
      if (!this.globals.json) this.notice(`${message}; trying again for up to 15 s`)
    }
    return openClient({ ...server, refused, warn: this.warning })
  }

  // oclif would print errors on stdout under --json and read RSM_CONTENT_TYPE; ours go to stderr, from cli.ts.
  override jsonEnabled(): boolean {
    return false
  }

  // Warns of deprecated aliases, for which oclif reads the whole configuration; we have none.
  override async init(): Promise<void> {}

  /** Explains a refusal of something that this program, not its user, asked for. */
  protected async blamed(error: Error): Promise<Error> {
    // Other errors cannot come from an older server, and are not worth what this loads.
    const isReported: ErrorCode[] = ['invalid', 'not_found', 'method_not_allowed']
    if (!(error instanceof RsmError) || !isReported.includes(error.code)) return error
    const { blameOlderServer } = await import('./older-server.ts')
    return blameOlderServer(error, this.config.version, () => openClient(this.server()))
  }

  override async catch(error: Error): Promise<never> {
    const blamed = await this.blamed(error)
    throw blameVariables(blamed, this.variables)
  }

  protected override async _run<T>(): Promise<T> {
    const data = await super._run<T>()
    if (this.globals.json && data !== undefined) process.stdout.write(`${jsonText(data, 2)}\n`)
    return data
  }
}

/** A command that works on this machine: a server cannot be chosen for it. */
export abstract class LocalCommand extends BaseCommand {
  // The flags that are missing are optional, so their values are undefined.
  static override baseFlags = { json, ...displayFlags } as typeof globalFlags
}
