import { boolean, string } from '@oclif/core/flags'
import { roles } from '../../core/permissions.ts'
import type { TokenCreate } from '../../core/protocol/http/tokens.ts'
import { showTokenRole } from '../../ui/caller.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { needed } from '../../ui/flags/checks.ts'
import { given, ifGiven } from '../../ui/flags/given.ts'
import { parseDays } from '../../ui/input/values.ts'
import { columnsOf } from '../../ui/text/screen.ts'
import { showTime } from '../../ui/text/time.ts'
import { wrapAdvice } from '../../ui/text/wrap.ts'

export default class TokensAdd extends BaseCommand {
  static override summary = 'Make a personal access token, for example for a pipeline; it is shown once'
  static override description = 'Prints only the token on stdout.'
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
      description:
        'for the role ADMIN: also allow changes of users, enrollment tokens and webhooks, which outlast the token',
    }),
    expires: string({
      helpValue: 'TIME',
      description: 'how long the token is valid, like 90d or 12h; a bare number is days (default: 90)',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(TokensAdd)
    const input: TokenCreate = {
      name: args.name,
      ...given({
        role: flags.role as TokenCreate['role'],
        admin: flags.admin ? true : undefined,
        expiresInDays: ifGiven(flags.expires, parseDays),
      }),
    }
    const client = await this.client()
    const made = await client.tokens.create(input)
    this.print(made.token)
    const next = [
      'shown this once; give it to the pipeline as the secret RSM_TOKEN, or as a file named by RSM_TOKEN_FILE',
      `it is ${showTokenRole(made)} until ${showTime(made.expiresAt, flags.utc)}; to revoke it: \`rsm tokens remove ${made.id}\``,
    ]
    this.hint(next.flatMap((line) => wrapAdvice(line, columnsOf(process.stderr))).join('\n'))
    return made
  }
}
