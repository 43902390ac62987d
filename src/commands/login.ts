import { resolve } from 'node:path'
import { string as word } from '@oclif/core/args'
import { boolean, string } from '@oclif/core/flags'
import { openClient } from '../client/client.ts'
import { Contexts, normalUrl } from '../client/contexts.ts'
import { BaseCommand } from '../ui/command/base-command.ts'
import { readPassword } from '../ui/input/password.ts'
import { ask } from '../ui/input/prompt.ts'

const loopback = /^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|\/|$)/

export default class Login extends BaseCommand {
  static override summary = 'Log in to a server and remember it'
  static override examples = [
    '$ rsm login https://rsm.example.org',
    '$ rsm login http://127.0.0.1:18080 --username ci --password-stdin < password',
  ]
  static override args = {
    url: word({ ignoreStdin: true, description: 'server; the one in use when left out' }),
  }
  static override flags = {
    username: string({ char: 'u', description: 'who logs in; asked when left out' }),
    'password-stdin': boolean({ description: 'password from stdin instead of asking' }),
  }

  async run() {
    const { args, flags } = await this.parse(Login)
    this.globals = flags
    const contexts = new Contexts()
    const asked = args.url === undefined ? undefined : normalUrl(args.url)
    const known =
      asked === undefined
        ? this.server()
        : contexts.choose({
            url: asked,
            caFile: flags['ca-file'],
            tlsFingerprint: flags['tls-fingerprint'],
          })
    const url = known.url
    const name = flags.context ?? known.context ?? new URL(url).host
    if (url.startsWith('http:') && !loopback.test(url))
      this.notice(`warning: ${url} is not encrypted: your password can be read on its way`)
    const username =
      flags.username ??
      ((await ask('Username [admin]: ', { instead: 'give it with --username' })).trim() || 'admin')
    const password = await readPassword(flags['password-stdin'], 'Password: ')
    const { caFile, tlsFingerprint } = known
    const client = await openClient({ url, caFile, tlsFingerprint })
    const { token, expiresAt, user } = await client.auth.login({ username, password })
    const trust = {
      ...(caFile === undefined ? {} : { caFile: resolve(caFile) }),
      ...(tlsFingerprint === undefined ? {} : { tlsFingerprint }),
    }
    contexts.save(name, { url, username: user.username, ...trust }, token)
    this.print(`logged in to ${url} as ${user.username} (${user.role})`)
    this.hint('next: rsm hosts list')
    return { url, context: name, expiresAt, user }
  }
}
