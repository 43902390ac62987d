import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { timeColumn } from '../../cli/text/time.ts'
import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import type { Enrollment } from '../../core/protocol/http/agent.ts'

export default class EnrollmentsList extends BaseCommand {
  static override summary = 'List enrollment tokens (for administrators)'
  static override examples = ['$ rsm enrollments list']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(EnrollmentsList)
    const client = await this.client()
    const page = await allPages((paging) => client.enrollments.list(paging), {}, flags.limit)
    const clusters = await this.#clusterNames(client, page.content)
    const { showTags } = await import('../../cli/hosts/view.ts')
    return showList(this, page, {
      noun: 'enrollment tokens',
      filtered: false,
      none: 'no enrollment tokens: rsm hosts join',
      columns: [
        { heading: 'ID', value: (enrollment) => enrollment.id, essential: true },
        { heading: 'NAME', value: (enrollment) => enrollment.name, essential: true },
        { heading: 'USES', value: ({ uses, maxUses }) => `${uses} of ${maxUses}` },
        {
          heading: 'HOST',
          value: ({ hostId }) => (hostId === null ? null : `@id:${hostId}`),
          essential: true,
        },
        { heading: 'CLUSTER', value: ({ clusterId }) => clusters.get(clusterId) ?? clusterId },
        { heading: 'TAGS', value: (enrollment) => showTags(enrollment.tags) },
        { heading: 'BY', value: (enrollment) => enrollment.createdBy },
        timeColumn('EXPIRES', ({ expiresAt }) => expiresAt, flags.utc),
      ],
    })
  }

  async #clusterNames(client: Client, tokens: readonly Enrollment[]): Promise<Map<number | null, string>> {
    if (tokens.every(({ clusterId }) => clusterId === null)) return new Map()
    const { content } = await allPages((paging) => client.clusters.list(paging), {})
    return new Map(content.map(({ id, name }) => [id, name]))
  }
}
