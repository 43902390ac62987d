import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findUser } from '../../cli/names/names.ts'
import { showTime } from '../../cli/text/time.ts'
import { showUserRole } from '../../cli/views/roles.ts'

export default class UsersShow extends BaseCommand {
  static override summary = 'Show a user (for administrators)'
  static override examples = ['$ rsm users show alice']
  static override args = { user: needed('name of the user') }

  async run() {
    const { args, flags } = await this.parse(UsersShow)
    const user = await findUser(await this.client(), args.user)
    if (this.globals.json) return user
    const { renderFields } = await import('../../cli/text/table.ts')
    this.print(
      renderFields({
        id: user.id,
        username: user.username,
        role: showUserRole(user),
        enabled: user.enabled ? 'yes' : 'no',
        // Servers before 0.2.0 do not send this field.
        totp: user.totp ? 'yes' : 'no',
        email: user.email,
        'last login': showTime(user.lastLoginAt, flags.utc),
        created: showTime(user.createdAt, flags.utc),
        changed: showTime(user.updatedAt, flags.utc),
      }),
    )
    return user
  }
}
