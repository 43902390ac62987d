import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { given, ifGiven, needed } from '../../cli/flags/checks.ts'
import { parseLifetime } from '../../cli/input/values.ts'
import { columnsOf } from '../../cli/text/screen.ts'
import { showTime } from '../../cli/text/time.ts'
import { wrapAdvice } from '../../cli/text/width.ts'
import { showTokenRole } from '../../cli/views/roles.ts'
import { roles } from '../../core/permissions.ts'
import type { TokenCreate } from '../../core/protocol/http/users.ts'

export default class TokensAdd extends BaseCommand {
  static override summary = 'Create a personal access token, e.g. for a pipeline'
  static override description =
    'Prints only the token on stdout; it is shown once. Users, enrollment tokens and webhooks outlast a token, ' +
    'so one with the role ADMIN can change them only with --admin.'
  static override examples = [
    '$ rsm tokens add nightly --role OPERATOR --expires 30d',
    '$ rsm tokens add inventory --role ADMIN --admin --expires 7d',
    '$ (umask 077; rsm tokens add ci > rsm-token) && RSM_TOKEN_FILE=rsm-token rsm hosts list',
  ]
  static override args = { name: needed('what it is for') }
  static override flags = {
    role: string({
      options: [...roles],
      description: 'role of the token (default: yours), never above yours',
    }),
    admin: boolean({
      description: 'role ADMIN: also allow changes that outlast the token',
    }),
    expires: string({
      helpValue: 'TIME',
      description: 'lifetime, like 12h or 90d (default: 90d)',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(TokensAdd)
    const input: TokenCreate = {
      name: args.name,
      ...given({
        role: flags.role as TokenCreate['role'],
        admin: flags.admin ? true : undefined,
        expiresInDays: ifGiven(flags.expires, (text) => parseLifetime('--expires', text) / 86_400),
      }),
    }
    const client = await this.client()
    const made = await client.tokens.create(input)
    this.print(made.token)
    const next = [
      'shown only once; give it to the pipeline as the secret RSM_TOKEN, or as a file named by RSM_TOKEN_FILE',
      `it is ${showTokenRole(made)} until ${showTime(made.expiresAt, flags.utc)}; to revoke it: \`rsm tokens remove ${made.id}\``,
    ]
    this.hint(next.flatMap((line) => wrapAdvice(line, columnsOf(process.stderr))).join('\n'))
    return made
  }
}
