import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { ask } from '../../ui/input/prompt.ts'

export default class TotpDisable extends BaseCommand {
  static override summary = 'Log in with your password alone again, without codes'
  static override description =
    'Takes a code of the app, or a recovery code. For a user who has neither: rsm users edit USER --disable-totp, by an ADMIN.'
  static override examples = ['$ rsm totp disable']
  static override flags = {
    code: string({ description: 'code of the authenticator app, or a recovery code (asked if not given)' }),
  }

  async run() {
    const { flags } = await this.parse(TotpDisable)
    const client = await this.client()
    const code = flags.code ?? (await ask('Code: ', { instead: 'give it with --code' })).trim()
    await client.auth.removeTotp(code)
    this.done('from now on you log in with your password alone')
    return {}
  }
}
