import { openClient } from '../client/client.ts'
import { Contexts } from '../client/contexts.ts'
import { RsmError } from '../core/errors.ts'
import { BaseCommand } from '../ui/command/base-command.ts'

export default class Logout extends BaseCommand {
  static override summary = 'End the session with a server and forget its token'
  static override examples = ['$ rsm logout']

  async run() {
    const { flags } = await this.parse(Logout)
    this.globals = flags
    const server = this.server()
    let ended = false
    if (server.token !== undefined) {
      const client = await openClient(server)
      try {
        await client.auth.logout()
        ended = true
      } catch (error) {
        // A session that has ended already, or a server that is away, must not keep the token on this disk.
        if (!(error instanceof RsmError)) throw error
        if (error.code !== 'unauthenticated') this.notice(`the session could not be ended: ${error.message}`)
      }
    }
    if (server.context !== undefined) new Contexts().forget(server.context)
    this.print(`logged out of ${server.url}`)
    return { url: server.url, ended }
  }
}
