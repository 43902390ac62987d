import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { timeColumn } from '../../cli/text/time.ts'
import { showTokenRole } from '../../cli/views/roles.ts'
import { allPages } from '../../client/http/pages.ts'

export default class TokensList extends BaseCommand {
  static override summary = 'List your own personal access tokens'
  static override examples = ['$ rsm tokens list']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(TokensList)
    const client = await this.client()
    const page = await allPages((paging) => client.tokens.list(paging), {}, flags.limit)
    return showList(this, page, {
      noun: 'tokens',
      filtered: false,
      none: 'no tokens: rsm tokens add NAME',
      columns: [
        { heading: 'ID', value: (token) => token.id, essential: true },
        { heading: 'NAME', value: (token) => token.name, essential: true },
        { heading: 'ROLE', value: showTokenRole },
        timeColumn('CREATED', ({ createdAt }) => createdAt, flags.utc),
        timeColumn(
          'LAST USED',
          ({ createdAt, lastUsedAt }) => (lastUsedAt === createdAt ? null : lastUsedAt),
          flags.utc,
        ),
        timeColumn('EXPIRES', ({ expiresAt }) => expiresAt, flags.utc),
      ],
    })
  }
}
