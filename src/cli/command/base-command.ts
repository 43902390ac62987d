import { Command } from '@oclif/core/command'
import { boolean, string } from '@oclif/core/flags'
import type { FlagInput, Input, ParserOutput } from '@oclif/core/interfaces'
import { type Client, openClient } from '../../client/client.ts'
import { type ErrorCode, RsmError } from '../../core/errors.ts'
import { type ChosenServer, Contexts } from '../contexts/contexts.ts'
import { alone, anyCase, checkTogether, type FlagsOf } from '../flags/checks.ts'
import { fromEnvironment, type Variables } from '../flags/environment.ts'
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
  url: string({ helpGroup, helpValue: 'URL', description: 'server to use (RSM_URL)' }),
  context: string({ helpGroup, helpValue: 'NAME', description: 'stored server to use (RSM_CONTEXT)' }),
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

const clean = (text: string) => (process.stdout.isTTY ? sanitizePainted(text) : sanitize(text))

/** A command parses, calls once, renders, and returns the data, which `--json` prints. */
export abstract class BaseCommand extends Command {
  static override baseFlags = globalFlags

  globals: GlobalFlags = { json: false, quiet: false, utc: false }
  protected readonly variables: Variables = new Map()

  protected override async parse<F extends Values, B extends Values, A extends Values>(
    options: Input<F, B, A>,
    argv?: string[],
  ): Promise<ParserOutput<F, B, A>> {
    // Copied explicitly, because spreading `options` drops inherited properties.
    const inherited = options.baseFlags === undefined ? {} : { baseFlags: options.baseFlags }
    const declared = options.flags ?? ({} as FlagInput<F>)
    const flags = alone(fromEnvironment(anyCase(declared), this.variables))
    const args = options.args === undefined ? {} : { args: anyCase(options.args, () => '') }
    const parsed = await super.parse({ ...options, ...inherited, ...args, flags }, argv)
    checkTogether(declared, parsed)
    this.globals = { ...this.globals, ...(parsed.flags as Partial<GlobalFlags>) }
    return parsed
  }

  /** Prints sanitized text, because a malicious server could choose the names in it; nothing with `--json`. */
  print(text: string): void {
    if (!this.globals.json) process.stdout.write(`${clean(text)}\n`)
  }

  /** Confirms a change in one line, unless `--quiet`. Use `print` for requested data. */
  done(text: string): void {
    if (!this.globals.quiet) this.print(sanitizeLine(text))
  }

  /** Like `print`, but on a terminal pages text longer than the screen (contract §9). */
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

  /** Suggests a next step, if a person is watching. */
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

  /** A token is as good as a password. Silent in CI, where jobs cannot change the mode of mounted secrets. */
  protected warnOfReadable(path: string | undefined): void {
    if (path !== undefined && (process.env['CI'] ?? '') === '' && isReadableByAll(path))
      this.warning(`every user of this machine can read the token: chmod 600 ${shellWord(path)}`)
  }

  /** The chosen server's display name: `staging (https://rsm.example.org)`. */
  serverName(): string {
    const { url, context } = this.server()
    return context === undefined || url.includes(context) ? url : `${context} (${url})`
  }

  /** A client of the chosen server. Errors: `unauthenticated` without a token; nothing is sent. */
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

  // With --json, oclif would print errors on stdout and read RSM_CONTENT_TYPE; cli.ts prints ours on stderr.
  override jsonEnabled(): boolean {
    return false
  }

  // oclif's version loads the whole configuration to warn about deprecated aliases; we have none.
  override async init(): Promise<void> {}

  /** Explains an error that an older server may have caused. */
  protected async blamed(error: Error): Promise<Error> {
    // Other errors cannot come from an older server, so skip loading the module.
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

/** A command that works on this machine, without the flags that choose a server. */
export abstract class LocalCommand extends BaseCommand {
  // Safe, because the missing flags are optional.
  static override baseFlags = { json, ...displayFlags } as typeof globalFlags
}
