import { BaseCommand } from '../cli/command/base-command.ts'
import { type ChosenServer, Contexts } from '../cli/contexts/contexts.ts'
import { openClient } from '../client/client.ts'
import { RsmError } from '../core/errors.ts'

/** Whether `login` got the token for a password. Others must stay valid, because they may be used elsewhere. */
const isSession = (token: string) => token.startsWith('rsm_ses_')

export default class Logout extends BaseCommand {
  static override summary = 'End the session with a server and forget its token'
  static override description =
    'A token from rsm tokens add is forgotten but stays valid; rsm tokens remove ends it.'
  static override examples = ['$ rsm logout', '$ rsm logout --context staging']

  async run() {
    await this.parse(Logout)
    const server = this.server()
    const { token, url, context } = server
    const ended = token !== undefined && isSession(token) && (await this.#end(server))
    const contexts = new Contexts()
    // An option or a variable may have chosen another token than the stored one.
    if (context !== undefined && token !== undefined && contexts.hasToken(context, token))
      contexts.forget(context)
    this.done(`logged out of ${url}`)
    if (token !== undefined && !isSession(token)) this.notice('the token itself is still valid')
    return { url, ended }
  }

  /** Tolerates an ended session and an unreachable server, so that the stored token is removed in any case. */
  async #end(server: ChosenServer): Promise<boolean> {
    try {
      await (await openClient({ ...server, warn: this.warning })).auth.logout()
      return true
    } catch (error) {
      if (!(error instanceof RsmError)) throw error
      if (error.code !== 'unauthenticated') this.notice(`the session could not be ended: ${error.message}`)
      return false
    }
  }
}
