import { string } from '@oclif/core/flags'
import { allPages } from '../../client/http/pages.ts'
import type { UserQuery } from '../../core/protocol/http/users.ts'
import { showUserRole } from '../../ui/caller.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { limitFlag, showList } from '../../ui/command/list.ts'
import { given } from '../../ui/flags/given.ts'
import { timeColumn } from '../../ui/text/time.ts'

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
        { heading: 'ID', value: (user) => user.id, keep: true },
        { heading: 'USERNAME', value: (user) => user.username, keep: true },
        { heading: 'ROLE', value: showUserRole },
        { heading: 'ENABLED', value: (user) => (user.enabled ? 'yes' : 'no') },
        { heading: 'EMAIL', value: (user) => user.email },
        timeColumn('LAST LOGIN', ({ lastLoginAt }) => lastLoginAt, flags.utc),
      ],
    })
  }
}
