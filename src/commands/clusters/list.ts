import { integer, string } from '@oclif/core/flags'
import { allPages } from '../../client/http/pages.ts'
import type { ClusterQuery } from '../../core/protocol/http/clusters.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'

export default class ClustersList extends BaseCommand {
  static override summary = 'List clusters'
  static override examples = ['$ rsm clusters list']
  static override flags = {
    search: string({ helpValue: 'TEXT', description: 'only names that contain this' }),
    limit: integer({ min: 1, helpValue: 'N', description: 'show at most N' }),
  }

  async run() {
    const { flags } = await this.parse(ClustersList)
    this.globals = flags
    const client = await this.client()
    const query: ClusterQuery = {}
    if (flags.search !== undefined) query.search = flags.search
    const page = await allPages((paging) => client.clusters.list(paging), query, flags.limit)
    if (!this.globals.json && page.content.length > 0) {
      const { renderTable } = await import('../../ui/text/table.ts')
      await this.printLong(
        renderTable(page.content, [
          { heading: 'ID', value: (cluster) => cluster.id, keep: true },
          { heading: 'NAME', value: (cluster) => cluster.name, keep: true },
          { heading: 'HOSTS', value: (cluster) => cluster.hostCount },
          { heading: 'SELECTOR', value: (cluster) => cluster.selector ?? '' },
          { heading: 'DESCRIPTION', value: (cluster) => cluster.description },
        ]),
      )
    }
    if (page.totalElements === 0) {
      const filtered = Object.keys(query).length > 0
      this.notice(filtered ? 'no clusters match' : "no clusters: rsm clusters add NAME -w 'web[1-3]'")
    }
    this.saidCut(page, 'clusters')
    return page
  }
}
