import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refusingTaken } from '../../cli/command/failure.ts'
import { given, ifGiven, needed } from '../../cli/flags/checks.ts'
import { readNewPassword } from '../../cli/input/prompt.ts'
import { showUserRole } from '../../cli/views/roles.ts'
import { type Right, rights, roles } from '../../core/permissions.ts'
import type { UserCreate } from '../../core/protocol/http/users.ts'

export default class UsersAdd extends BaseCommand {
  static override summary = 'Add a user (for administrators)'
  static override examples = [
    '$ rsm users add alice --role OPERATOR',
    '$ pwgen 20 1 | rsm users add ci --role VIEWER --password-stdin',
  ]
  static override args = { username: needed('name of the user') }
  static override flags = {
    role: string({
      required: true,
      options: [...roles],
      description: 'role of the user',
    }),
    right: string({
      multiple: true,
      options: [...rights],
      description: 'extra right in addition to the role; may be repeated',
    }),
    email: string({ description: 'e-mail address' }),
    'password-stdin': boolean({ description: 'read the password from stdin' }),
  }

  async run() {
    const { args, flags } = await this.parse(UsersAdd)
    const client = await this.client()
    const password = await readNewPassword(flags['password-stdin'])
    const input: UserCreate = {
      username: args.username,
      password,
      role: flags.role as UserCreate['role'],
      ...given({
        email: flags.email,
        rights: ifGiven(flags.right, (words) => [...new Set(words)] as Right[]),
      }),
    }
    const user = await refusingTaken(`user ${args.username}`, 'rsm users list', client.users.create(input))
    this.done(`added ${user.username} (${showUserRole(user)})`)
    this.hint(`to log in: rsm login ${client.api.url} --username ${user.username}`)
    return user
  }
}
