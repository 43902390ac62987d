import { string } from '@oclif/core/args'
import { boolean } from '@oclif/core/flags'
import { findCluster } from '../../client/names.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { confirmRemoval } from '../../ui/input/prompt.ts'

export default class ClustersRemove extends BaseCommand {
  static override summary = 'Remove a cluster; its hosts stay'
  static override examples = ['$ rsm clusters remove web --yes']
  static override args = {
    cluster: string({ required: true, ignoreStdin: true, description: 'name of the cluster' }),
  }
  static override flags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

  async run() {
    const { args, flags } = await this.parse(ClustersRemove)
    this.globals = flags
    const client = await this.client()
    const cluster = await findCluster(client, args.cluster)
    await confirmRemoval(`cluster ${cluster.name}`, flags.yes)
    const removed = await client.clusters.remove(cluster.id)
    this.print(`removed ${cluster.name}`)
    return removed
  }
}
