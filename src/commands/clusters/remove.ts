import { findCluster } from '../../client/names.ts'
import type { Cluster } from '../../core/protocol/http/clusters.ts'
import { namesToRemove, RemovalCommand, removalFlags } from '../../ui/command/removal.ts'

export default class ClustersRemove extends RemovalCommand {
  static override summary = 'Remove a cluster; its hosts stay'
  static override examples = ['$ rsm clusters remove web --yes']
  static override args = {
    cluster: namesToRemove('names of clusters'),
  }
  static override flags = { ...removalFlags }

  async run() {
    const { args, flags } = await this.parse(ClustersRemove)
    this.globals = flags
    const client = await this.client()
    const names = args.cluster
    const found = await this.lookUp(names, (name) => findCluster(client, name))
    const removed = await this.removeAll(
      found,
      {
        noun: 'cluster',
        nameOf: (cluster: Cluster) => cluster.name,
        remove: ({ id }) => client.clusters.remove(id),
      },
      flags.yes,
    )
    return names.length === 1 ? removed[0] : removed
  }
}
