import { BaseCommand } from '../../cli/command/base-command.ts'
import { ask, isSomeoneThere, readPassword } from '../../cli/input/prompt.ts'
import { RsmError } from '../../core/errors.ts'

export default class TotpEnable extends BaseCommand {
  static override summary = 'Require a code from an authenticator app at login'
  static override description =
    'Shows a QR code, and asks for a code of the app before anything changes. Prints ten recovery codes; each ' +
    'works once in place of a code. Personal access tokens need no code.'
  static override examples = ['$ rsm totp enable']

  async run() {
    await this.parse(TotpEnable)
    const instead = 'run this on a terminal: it needs a person with the app'
    if (!isSomeoneThere()) throw new RsmError('usage', 'no terminal to ask on', { hint: instead })
    const client = await this.client()
    const password = await readPassword(false, 'Current password: ')
    const { secret, uri } = await client.auth.createTotp(password)
    const { renderUnicodeCompact } = await import('uqr')
    this.notice(`scan this with the app, or type the key ${secret} into it:`)
    if (!this.globals.quiet) process.stderr.write(`\n${renderUnicodeCompact(uri)}\n\n`)
    const code = await ask('Code: ', { instead })
    const confirmed = await client.auth.confirmTotp(code.trim())
    this.done('from now on you log in with a code as well; keep these recovery codes apart from your phone')
    this.hint('other sessions stay logged in; to end them: rsm sessions end --others')
    this.print(confirmed.recoveryCodes.join('\n'))
    return confirmed
  }
}
