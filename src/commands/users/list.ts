import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { given } from '../../cli/flags/checks.ts'
import { timeColumn } from '../../cli/text/time.ts'
import { showUserRole } from '../../cli/views/roles.ts'
import { allPages } from '../../client/http/pages.ts'
import type { UserQuery } from '../../core/protocol/http/users.ts'

export default class UsersList extends BaseCommand {
  static override summary = 'List users (for administrators)'
  static override examples = ['$ rsm users list']
  static override flags = {
    search: string({
      helpValue: 'TEXT',
      description: 'only usernames and e-mail addresses that contain this text',
    }),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(UsersList)
    const client = await this.client()
    const query: UserQuery = given({ search: flags.search })
    const page = await allPages((paging) => client.users.list(paging), query, flags.limit)
    return showList(this, page, {
      noun: 'users',
      filtered: true,
      none: '',
      columns: [
        { heading: 'ID', value: (user) => user.id, essential: true },
        { heading: 'USERNAME', value: (user) => user.username, essential: true },
        { heading: 'ROLE', value: showUserRole },
        { heading: 'ENABLED', value: (user) => (user.enabled ? 'yes' : 'no') },
        { heading: 'EMAIL', value: (user) => user.email },
        timeColumn('LAST LOGIN', ({ lastLoginAt }) => lastLoginAt, flags.utc),
      ],
    })
  }
}
