import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refuseEmpty } from '../../cli/command/failure.ts'
import { given, needed } from '../../cli/flags/checks.ts'
import { memberFlags, readMembers } from '../../cli/flags/targets.ts'
import { findCluster } from '../../cli/names/names.ts'
import { counted } from '../../cli/text/amounts.ts'
import type { ClusterPatch } from '../../core/protocol/http/clusters.ts'

export default class ClustersEdit extends BaseCommand {
  static override summary = 'Change the name, description or members of a cluster'
  static override examples = ["$ rsm clusters edit web -w 'web[1-5]'"]
  static override args = { cluster: needed('name of the cluster') }
  static override flags = {
    ...memberFlags,
    name: string({ description: 'new name' }),
    description: string({ char: 'd', description: 'new description' }),
  }

  async run() {
    const { args, flags } = await this.parse(ClustersEdit)
    const client = await this.client()
    const members = await readMembers(client, flags)
    const patch: ClusterPatch = { ...members, ...given({ name: flags.name, description: flags.description }) }
    // A cluster has a list of hosts or a selector, so setting one clears the other.
    if (members.hostIds !== undefined) patch.selector = null
    if (members.selector !== undefined) patch.hostIds = null
    refuseEmpty(patch, 'clusters edit')
    const { id } = await findCluster(client, args.cluster)
    const cluster = await client.clusters.update(id, patch)
    this.done(`changed ${cluster.name} (${counted(cluster.hostCount, 'host')})`)
    return cluster
  }
}
