import { BaseCommand } from '../cli/command/base-command.ts'
import { showCaller } from '../cli/views/roles.ts'

export default class Whoami extends BaseCommand {
  static override summary = 'Show who is logged in, and on which server'
  static override examples = ['$ rsm whoami']

  async run() {
    await this.parse(Whoami)
    const client = await this.client()
    const user = await client.auth.me()
    this.print(`${showCaller(user)} at ${client.api.url}`)
    return { ...user, url: client.api.url }
  }
}
