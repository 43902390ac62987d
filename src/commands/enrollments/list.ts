import { integer } from '@oclif/core/flags'
import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import type { Enrollment } from '../../core/protocol/http/hosts.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { showTime } from '../../ui/text/time.ts'

export default class EnrollmentsList extends BaseCommand {
  static override summary = 'List enrolment tokens, which `rsm hosts join` makes (for administrators)'
  static override examples = ['$ rsm enrollments list']
  static override flags = { limit: integer({ min: 1, helpValue: 'N', description: 'show at most N' }) }

  async run() {
    const { flags } = await this.parse(EnrollmentsList)
    this.globals = flags
    const client = await this.client()
    const page = await allPages((paging) => client.enrollments.list(paging), {}, flags.limit)
    if (!this.globals.json && page.content.length > 0) {
      const { renderTable } = await import('../../ui/text/table.ts')
      const clusters = await this.#clusterNames(client, page.content)
      const { showTags } = await import('../../ui/hosts/view.ts')
      await this.printLong(
        renderTable(page.content, [
          { heading: 'ID', value: (enrollment) => enrollment.id, keep: true },
          { heading: 'NAME', value: (enrollment) => enrollment.name, keep: true },
          { heading: 'USES', value: ({ uses, maxUses }) => `${uses} of ${maxUses}` },
          { heading: 'HOST', value: ({ hostId }) => (hostId === null ? null : `@id:${hostId}`), keep: true },
          { heading: 'CLUSTER', value: ({ clusterId }) => clusters.get(clusterId) ?? clusterId },
          { heading: 'TAGS', value: (enrollment) => showTags(enrollment.tags) },
          { heading: 'BY', value: (enrollment) => enrollment.createdBy },
          { heading: 'EXPIRES', value: (enrollment) => showTime(enrollment.expiresAt, flags.utc) },
        ]),
      )
    }
    if (page.totalElements === 0) this.notice('no enrolment tokens: rsm hosts join')
    this.saidCut(page, 'enrolment tokens')
    return page
  }

  async #clusterNames(client: Client, tokens: readonly Enrollment[]): Promise<Map<number | null, string>> {
    if (tokens.every(({ clusterId }) => clusterId === null)) return new Map()
    const { content } = await allPages((paging) => client.clusters.list(paging), {})
    return new Map(content.map(({ id, name }) => [id, name]))
  }
}
