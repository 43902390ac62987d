import { string } from '@oclif/core/args'
import { boolean } from '@oclif/core/flags'
import { findUser } from '../../client/names.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { confirmRemoval } from '../../ui/input/prompt.ts'

export default class UsersRemove extends BaseCommand {
  static override summary = 'Remove a user; their sessions and tokens end (for administrators)'
  static override examples = ['$ rsm users remove alice --yes']
  static override args = {
    user: string({ required: true, ignoreStdin: true, description: 'name of the user' }),
  }
  static override flags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

  async run() {
    const { args, flags } = await this.parse(UsersRemove)
    this.globals = flags
    const client = await this.client()
    const user = await findUser(client, args.user)
    await confirmRemoval(`user ${user.username}`, flags.yes)
    const removed = await client.users.remove(user.id)
    this.print(`removed ${user.username}`)
    return removed
  }
}
