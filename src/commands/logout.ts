import { BaseCommand } from '../cli/command/base-command.ts'
import { type ChosenServer, Contexts } from '../cli/contexts/contexts.ts'
import { openClient } from '../client/client.ts'
import { RsmError } from '../core/errors.ts'

/** What `login` got for a password; other tokens were made to be kept, and serve elsewhere too. */
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
    // The token may be another one, of an option or a variable.
    if (context !== undefined && token !== undefined && contexts.hasToken(context, token))
      contexts.forget(context)
    this.done(`logged out of ${url}`)
    if (token !== undefined && !isSession(token)) this.notice('the token itself is still valid')
    return { url, ended }
  }

  /** A session that has ended already, or a server that is away, must not keep the token on this disk. */
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
