import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refuseEmpty } from '../../cli/command/failure.ts'
import { given, ifGiven, needed } from '../../cli/flags/checks.ts'
import { readNewPassword } from '../../cli/input/prompt.ts'
import { findUser } from '../../cli/names/names.ts'
import { showUserRole } from '../../cli/views/roles.ts'
import { RsmError } from '../../core/errors.ts'
import { type Right, rights, roles } from '../../core/permissions.ts'
import type { UserPatch } from '../../core/protocol/http/users.ts'

/** The complete new rights of the user; `none` removes all. */
function rightsOf(words: readonly string[]): Right[] {
  const named = new Set(words)
  if (named.has('none') && named.size > 1)
    throw new RsmError('usage', '--right none cannot be combined with other rights')
  return rights.filter((right) => named.has(right))
}

export default class UsersEdit extends BaseCommand {
  static override summary = 'Change a user (for administrators)'
  static override description =
    'A new password, another role and --disable end every session and token of the user at once.'
  static override examples = [
    '$ rsm users edit alice --role ADMIN',
    '$ rsm users edit alice --disable',
    '$ rsm users edit alice --right hosts:remove',
    '$ pwgen 20 1 | rsm users edit ci --password-stdin',
  ]
  static override args = { user: needed('name of the user') }
  static override flags = {
    role: string({
      options: [...roles],
      description: 'role of the user',
    }),
    right: string({
      multiple: true,
      options: [...rights, 'none'],
      description: 'extra right in addition to the role; may be repeated',
    }),
    email: string({ description: "e-mail address; '' removes it" }),
    username: string({ description: 'new name' }),
    enable: boolean({ exclusive: ['disable'], description: 'allow the user to log in again' }),
    disable: boolean({ exclusive: ['enable'], description: 'stop the user from logging in' }),
    'disable-totp': boolean({
      description: 'stop asking for codes, if the authenticator app is lost',
    }),
    password: boolean({ exclusive: ['password-stdin'], description: 'ask for a new password' }),
    'password-stdin': boolean({ exclusive: ['password'], description: 'new password from stdin' }),
  }

  async run() {
    const { args, flags } = await this.parse(UsersEdit)
    const patch: UserPatch = given({
      role: flags.role as UserPatch['role'],
      username: flags.username,
      rights: ifGiven(flags.right, rightsOf),
      email: flags.email === '' ? null : flags.email,
      enabled: flags.enable || flags.disable ? !flags.disable : undefined,
      totp: flags['disable-totp'] ? (false as const) : undefined,
    })
    const newPassword = flags.password || flags['password-stdin']
    if (!newPassword) refuseEmpty(patch, 'users edit')
    const client = await this.client()
    const previous = await findUser(client, args.user)
    if (newPassword) patch.password = await readNewPassword(flags['password-stdin'])
    const user = await client.users.update(previous.id, patch)
    this.done(`changed ${user.username} (${showUserRole(user)}${user.enabled ? '' : ', disabled'})`)
    if (newPassword || user.role !== previous.role || (previous.enabled && !user.enabled))
      this.notice(`every session and token of ${user.username} has ended`)
    return user
  }
}
