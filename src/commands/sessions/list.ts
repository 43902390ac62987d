import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { timeColumn } from '../../cli/text/time.ts'
import { allPages } from '../../client/http/pages.ts'

export default class SessionsList extends BaseCommand {
  static override summary = 'List your login sessions'
  static override examples = ['$ rsm sessions list']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(SessionsList)
    const client = await this.client()
    const page = await allPages((paging) => client.sessions.list(paging), {}, flags.limit)
    return showList(this, page, {
      noun: 'sessions',
      filtered: false,
      none: 'no sessions: rsm login creates one',
      columns: [
        { heading: 'ID', value: ({ id }) => id, essential: true },
        { heading: 'FROM', value: ({ address }) => address, essential: true },
        { heading: 'CLIENT', value: ({ userAgent }) => userAgent },
        timeColumn('LOGGED IN', ({ createdAt }) => createdAt, flags.utc),
        timeColumn(
          'LAST USED',
          ({ lastUsedAt }) => lastUsedAt,
          flags.utc,
          ({ current }) => (current ? 'now' : undefined),
        ),
        timeColumn('ENDS', ({ expiresAt }) => expiresAt, flags.utc),
      ],
    })
  }
}
