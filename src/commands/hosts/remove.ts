import { string } from '@oclif/core/args'
import { boolean } from '@oclif/core/flags'
import { findHost } from '../../client/names.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { confirmRemoval } from '../../ui/input/prompt.ts'

export default class HostsRemove extends BaseCommand {
  static override summary = 'Remove a host and revoke its agent'
  static override examples = ['$ rsm hosts remove web1 --yes']
  static override args = {
    host: string({ required: true, ignoreStdin: true, description: 'hostname, or @id:17' }),
  }
  static override flags = {
    force: boolean({ description: 'although something runs on it: that becomes LOST' }),
    yes: boolean({ char: 'y', description: 'do not ask' }),
  }

  async run() {
    const { args, flags } = await this.parse(HostsRemove)
    this.globals = flags
    const client = await this.client()
    const host = await findHost(client, args.host)
    await confirmRemoval(`host ${host.hostname}`, flags.yes)
    const removed = await client.hosts.remove(host.id, { force: flags.force })
    this.print(`removed ${host.hostname}`)
    return removed
  }
}
