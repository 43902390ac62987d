import { showCaller } from '../ui/caller.ts'
import { BaseCommand } from '../ui/command/base-command.ts'

export default class Whoami extends BaseCommand {
  static override summary = 'Say who is logged in where'
  static override examples = ['$ rsm whoami']

  async run() {
    const { flags } = await this.parse(Whoami)
    this.globals = flags
    const client = await this.client()
    const user = await client.auth.me()
    this.print(`${showCaller(user)} at ${client.api.url}`)
    return { ...user, url: client.api.url }
  }
}
