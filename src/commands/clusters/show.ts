import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findCluster } from '../../cli/names/names.ts'
import { allPages } from '../../client/http/pages.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'

export default class ClustersShow extends BaseCommand {
  static override summary = 'Show a cluster and its hosts'
  static override examples = ['$ rsm clusters show production']
  static override args = { cluster: needed('name of the cluster') }

  async run() {
    const { args } = await this.parse(ClustersShow)
    const client = await this.client()
    const cluster = await findCluster(client, args.cluster)
    if (!this.globals.json) {
      const { content } = await allPages((paging) => client.hosts.list(paging), { clusterId: cluster.id })
      const { renderFields } = await import('../../cli/text/table.ts')
      this.print(
        renderFields({
          id: cluster.id,
          name: cluster.name,
          description: cluster.description,
          selector: cluster.selector,
          hosts: `${cluster.hostCount}: ${foldNodeset(content.map((host) => host.hostname))}`,
        }),
      )
    }
    return cluster
  }
}
