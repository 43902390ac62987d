import { string } from '@oclif/core/args'
import { boolean } from '@oclif/core/flags'
import { findToken } from '../../client/names.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { confirmRemoval } from '../../ui/input/prompt.ts'

export default class TokensRemove extends BaseCommand {
  static override summary = 'Revoke one of your personal access tokens; what hangs on it closes at once'
  static override examples = ['$ rsm tokens remove nightly --yes']
  static override args = {
    token: string({ required: true, ignoreStdin: true, description: 'name of the token, or its id' }),
  }
  static override flags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

  async run() {
    const { args, flags } = await this.parse(TokensRemove)
    this.globals = flags
    const client = await this.client()
    const token = await findToken(client, args.token)
    const named = `${token.name ?? 'without a name'} (id ${token.id})`
    await confirmRemoval(`token ${named}`, flags.yes)
    const removed = await client.tokens.remove(token.id)
    this.print(`removed ${named}`)
    return removed
  }
}
