import { resolve } from 'node:path'
import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../cli/command/base-command.ts'
import { Contexts, checkedToken } from '../cli/contexts/contexts.ts'
import { optional } from '../cli/flags/checks.ts'
import { readSecretFile } from '../cli/input/named-path.ts'
import { ask, isSomeoneThere, logIn, readPassword } from '../cli/input/prompt.ts'
import { stdinReader } from '../cli/input/stdin.ts'
import { type Client, openClient } from '../client/client.ts'
import { isInTheClear, normalUrl } from '../core/endpoint.ts'
import { RsmError } from '../core/errors.ts'
import type { Endpoint } from '../net/connect.ts'

interface LoginFlags {
  readonly username?: string | undefined
  readonly code?: string | undefined
  readonly 'password-stdin': boolean
  readonly context?: string | undefined
}

export default class Login extends BaseCommand {
  static override summary = 'Log in to a server and remember it'
  static override description =
    'With a token from `rsm tokens add`, it checks and stores the token without a prompt. Each user of a server has a ' +
    'separate context, so a login never replaces that of another user.'
  static override examples = [
    '$ rsm login https://rsm.example.org',
    '$ rsm login http://127.0.0.1:18080 --username ci --password-stdin < password',
    '$ rsm login https://rsm.example.org --context production --token-file ~/rsm-token',
  ]
  static override args = { url: optional('server (default: the current one)') }
  static override flags = {
    username: string({ char: 'u', description: 'username (asked if not given)' }),
    'password-stdin': boolean({ description: 'read the password from stdin' }),
    code: string({
      description: 'authenticator or recovery code (default: asked if needed)',
    }),
    'token-stdin': boolean({
      exclusive: ['username', 'password-stdin', 'code', 'token-file'],
      description: 'read a token from stdin instead of a password',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(Login)
    const contexts = new Contexts()
    const { url, caFile, tlsFingerprint } =
      args.url === undefined
        ? this.server(true)
        : contexts.choose({
            url: normalUrl(args.url),
            caFile: flags['ca-file'],
            tlsFingerprint: flags['tls-fingerprint'],
            isLogin: true,
          })
    if (flags.context !== undefined) contexts.refuseForeign(flags.context, url)
    contexts.prepare()
    const token = await this.#givenToken(flags)
    await this.#refusePage({ url, caFile, tlsFingerprint })
    this.warnOfReadable(flags['token-file'])
    if (isInTheClear(url))
      this.notice(
        `warning: ${url} is not encrypted: your ${token === undefined ? 'password' : 'token'} can be read in transit`,
      )
    const endpoint = { url, caFile, tlsFingerprint }
    const got =
      token === undefined
        ? await this.#logIn(await openClient({ ...endpoint, warn: this.warning }), flags)
        : {
            token,
            expiresAt: null,
            user: await (await openClient({ ...endpoint, token, warn: this.warning })).auth.me(),
          }
    const trust = {
      ...(caFile === undefined ? {} : { caFile: resolve(caFile) }),
      ...(tlsFingerprint === undefined ? {} : { tlsFingerprint }),
    }
    const { username } = got.user
    const { current } = contexts.list()
    const choose = () => {
      const chosen = flags.context ?? contexts.nameFor(url, username)
      contexts.refuseForeign(chosen, url, username)
      return chosen
    }
    const name = contexts.save(choose, { url, username, ...trust }, got.token)
    this.done(`logged in to ${url} as ${username} (${got.user.role})`)
    if (current !== null && current !== name)
      this.notice(`now using ${name}; to go back: rsm context use ${current}`)
    this.hint('next: rsm hosts list')
    return { url, context: name, expiresAt: got.expiresAt, user: got.user }
  }

  /** Refuses a URL copied from a browser: the server is at its origin, unless it answers under the path itself. */
  async #refusePage(endpoint: Endpoint): Promise<void> {
    const { url } = endpoint
    const { origin, pathname } = new URL(url)
    if (pathname === '/') return
    const answers = async (at: string) => {
      const { api } = await openClient({ ...endpoint, url: at })
      return api.call('GET', '/api/health').then(
        () => true,
        () => false,
      )
    }
    if ((await answers(url)) || !(await answers(origin))) return
    throw new RsmError('usage', `there is no server at ${url}, but one at ${origin}`, {
      hint: `rsm login ${origin}`,
    })
  }

  /** Reads only this command's flags, because a token in the environment was not meant to be stored. */
  async #givenToken(flags: { 'token-stdin': boolean; 'token-file'?: string | undefined }) {
    const path = flags['token-file']
    if (path !== undefined) return checkedToken(readSecretFile(path, '--token-file'))
    if (!flags['token-stdin']) return undefined
    return checkedToken((await stdinReader()('the token')).trim())
  }

  async #logIn(client: Client, flags: LoginFlags) {
    const { username = '', 'password-stdin': fromStdin, code } = flags
    // Detect a mistyped address, or another program there, before asking for a password.
    if (!fromStdin && isSomeoneThere()) await client.api.call('GET', '/api/health')
    if (username === '' && !isSomeoneThere())
      throw new RsmError('usage', 'no username: there is no terminal to ask for one', {
        hint: '--username admin --password-stdin < FILE, or --token-file FILE',
      })
    const instead = 'give it with --username'
    const asked = username || (await ask('Username [admin]: ', { instead })).trim() || 'admin'
    // Check before creating a session that could not be stored.
    if (flags.context !== undefined) new Contexts().refuseForeign(flags.context, client.api.url, asked)
    const password = await readPassword(fromStdin, 'Password: ')
    return logIn(client, { username: asked, password, ...(code !== undefined && { code }) })
  }
}
