import { integer, string } from '@oclif/core/flags'
import { allPages } from '../../client/http/pages.ts'
import type { UserQuery } from '../../core/protocol/http/users.ts'
import { showUserRole } from '../../ui/caller.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { showTime } from '../../ui/text/time.ts'

export default class UsersList extends BaseCommand {
  static override summary = 'List users (for administrators)'
  static override examples = ['$ rsm users list']
  static override flags = {
    search: string({
      helpValue: 'TEXT',
      description: 'only usernames and e-mail addresses that contain this',
    }),
    limit: integer({ min: 1, helpValue: 'N', description: 'show at most N' }),
  }

  async run() {
    const { flags } = await this.parse(UsersList)
    this.globals = flags
    const client = await this.client()
    const query: UserQuery = {}
    if (flags.search !== undefined) query.search = flags.search
    const page = await allPages((paging) => client.users.list(paging), query, flags.limit)
    if (!this.globals.json && page.content.length > 0) {
      const { renderTable } = await import('../../ui/text/table.ts')
      await this.printLong(
        renderTable(page.content, [
          { heading: 'ID', value: (user) => user.id, keep: true },
          { heading: 'USERNAME', value: (user) => user.username, keep: true },
          { heading: 'ROLE', value: showUserRole },
          { heading: 'ENABLED', value: (user) => (user.enabled ? 'yes' : 'no') },
          { heading: 'EMAIL', value: (user) => user.email },
          { heading: 'LAST LOGIN', value: (user) => showTime(user.lastLoginAt, flags.utc) },
        ]),
      )
    }
    if (page.totalElements === 0) this.notice('no users match')
    this.saidCut(page, 'users')
    return page
  }
}
