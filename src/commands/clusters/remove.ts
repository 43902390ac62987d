import { namesToRemove, RemovalCommand, removalFlags } from '../../ui/command/removal.ts'
import { findCluster } from '../../ui/names/names.ts'

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
    return this.removeNamed(
      args.cluster,
      {
        find: (name) => findCluster(client, name),
        noun: 'cluster',
        nameOf: (cluster) => cluster.name,
        remove: ({ id }) => client.clusters.remove(id),
      },
      flags.yes,
    )
  }
}
