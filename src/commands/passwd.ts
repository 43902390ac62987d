import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../cli/command/base-command.ts'
import { Contexts } from '../cli/contexts/contexts.ts'
import { logIn, readChangedPassword } from '../cli/input/prompt.ts'
import { RsmError } from '../core/errors.ts'

export default class Passwd extends BaseCommand {
  static override summary = 'Change your own password'
  static override description =
    'All your sessions and personal access tokens end; a stored login is renewed. With --password-stdin the ' +
    'first line of stdin is the current password, the second the new one.'
  static override examples = ['$ rsm passwd', '$ rsm passwd --password-stdin < both-passwords']
  static override flags = {
    'password-stdin': boolean({ description: 'read both passwords from stdin' }),
  }

  async run() {
    const { flags } = await this.parse(Passwd)
    const { token, context, url } = this.server()
    const client = await this.client()
    // Detect an invalid token or an unreachable server before asking for passwords.
    const { username, token: of } = await client.auth.me()
    if (of?.kind === 'personal')
      throw new RsmError(
        'forbidden',
        `${username} is logged in with a personal access token; this requires a session`,
        {
          hint: `rsm login ${url} --username ${username}`,
        },
      )
    const passwords = await readChangedPassword(flags['password-stdin'])
    await client.auth.changePassword(passwords)
    this.done(`changed the password of ${username}; all previous sessions and tokens have ended`)
    const contexts = new Contexts()
    const isStored = context !== undefined && token !== undefined && contexts.hasToken(context, token)
    if (isStored) {
      const renewed = await logIn(client, { username, password: passwords.newPassword })
      contexts.renew(context, renewed.token)
    } else this.notice(`log in again: rsm login ${url} --username ${username}`)
    return { username, loggedIn: isStored }
  }
}
