import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { given } from '../../cli/flags/checks.ts'
import { allPages } from '../../client/http/pages.ts'
import type { ClusterQuery } from '../../core/protocol/http/clusters.ts'

export default class ClustersList extends BaseCommand {
  static override summary = 'List clusters'
  static override examples = ['$ rsm clusters list']
  static override flags = {
    search: string({ helpValue: 'TEXT', description: 'only names that contain this text' }),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(ClustersList)
    const client = await this.client()
    const query: ClusterQuery = given({ search: flags.search })
    const page = await allPages((paging) => client.clusters.list(paging), query, flags.limit)
    return showList(this, page, {
      noun: 'clusters',
      filtered: Object.keys(query).length > 0,
      none: "no clusters: rsm clusters add NAME -w 'web[1-3]'",
      columns: [
        { heading: 'ID', value: (cluster) => cluster.id, essential: true },
        { heading: 'NAME', value: (cluster) => cluster.name, essential: true },
        { heading: 'HOSTS', value: (cluster) => cluster.hostCount },
        { heading: 'SELECTOR', value: (cluster) => cluster.selector ?? '' },
        { heading: 'DESCRIPTION', value: (cluster) => cluster.description },
      ],
    })
  }
}
