import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { ask } from '../../cli/input/prompt.ts'

export default class TotpDisable extends BaseCommand {
  static override summary = 'Stop requiring codes at login'
  static override description =
    'Requires a code of the app, or a recovery code. If a user has neither, an ADMIN can use rsm users edit ' +
    'USER --disable-totp.'
  static override examples = ['$ rsm totp disable']
  static override flags = {
    code: string({ description: 'authenticator or recovery code (default: asked)' }),
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
