import { integer } from '@oclif/core/flags'
import { allPages } from '../../client/http/pages.ts'
import { showTokenRole } from '../../ui/caller.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { showTime } from '../../ui/text/time.ts'

export default class TokensList extends BaseCommand {
  static override summary = 'List your own personal access tokens'
  static override examples = ['$ rsm tokens list']
  static override flags = { limit: integer({ min: 1, helpValue: 'N', description: 'show at most N' }) }

  async run() {
    const { flags } = await this.parse(TokensList)
    this.globals = flags
    const client = await this.client()
    const page = await allPages((paging) => client.tokens.list(paging), {}, flags.limit)
    if (!this.globals.json && page.content.length > 0) {
      const { renderTable } = await import('../../ui/text/table.ts')
      await this.printLong(
        renderTable(page.content, [
          { heading: 'ID', value: (token) => token.id, keep: true },
          { heading: 'NAME', value: (token) => token.name, keep: true },
          { heading: 'ROLE', value: showTokenRole },
          { heading: 'CREATED', value: (token) => showTime(token.createdAt, flags.utc) },
          {
            heading: 'LAST USED',
            value: ({ createdAt, lastUsedAt }) =>
              lastUsedAt === createdAt ? null : showTime(lastUsedAt, flags.utc),
          },
          { heading: 'EXPIRES', value: (token) => showTime(token.expiresAt, flags.utc) },
        ]),
      )
    }
    if (page.totalElements === 0) this.notice('no tokens: rsm tokens add NAME')
    this.saidCut(page, 'tokens')
    return page
  }
}
