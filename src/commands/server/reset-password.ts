import { boolean } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { controlOr } from '../../cli/command/control.ts'
import { needed } from '../../cli/flags/checks.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/flags/service.ts'
import { readNewPassword } from '../../cli/input/prompt.ts'
import { counted } from '../../cli/text/amounts.ts'
import { RsmError } from '../../core/errors.ts'

export default class ServerResetPassword extends LocalCommand {
  static override summary = "Set a new password for a user, on the server's machine"
  static override description =
    'For a forgotten password. Ends all sessions and personal access tokens of the user, and turns off codes of ' +
    "an authenticator app. A disabled user stays disabled. Run it as the server's user or root; it needs no " +
    'token, and also works without a running server.'
  static override examples = [
    '$ rsm server reset-password admin',
    '$ rsm server reset-password admin --password-stdin --data-dir /var/lib/rsm/server < new-password',
  ]
  static override args = {
    user: needed('name of the user'),
  }
  static override flags = {
    'password-stdin': boolean({ description: 'read the new password from stdin' }),
    'data-dir': serverDirectoryFlag,
  }

  async run() {
    const { args, flags } = await this.parse(ServerResetPassword)
    const dataDir = dataDirectory('server', flags['data-dir'])
    const set = (password: string) => {
      const input = { username: args.user, password }
      return controlOr(dataDir, 'reset-password', input, async (path) => {
        const { resetPasswordOffline } = await import('../../server/app/offline.ts')
        return resetPasswordOffline(path, input)
      })
    }
    // Check that the user exists before prompting: an empty password changes nothing and is refused as invalid.
    if (!flags['password-stdin'])
      await set('').catch((error: unknown) => {
        if (!(error instanceof RsmError && error.code === 'invalid')) throw error
      })
    const reset = await set(await readNewPassword(flags['password-stdin']))
    const { username, enabled, sessions, tokens } = reset
    const ended = `${counted(sessions, 'session')} and ${counted(tokens, 'personal access token')} have ended`
    this.done(`${username} has a new password; ${ended}`)
    if (!enabled) this.notice(`warning: ${username} is disabled: another ADMIN must enable the user`)
    return reset
  }
}
