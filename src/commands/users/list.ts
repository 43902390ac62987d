import { integer } from '@oclif/core/flags'
import { allPages } from '../../client/pages.ts'
import { BaseCommand } from '../../ui/base-command.ts'
import { showTime } from '../../ui/time.ts'

export default class UsersList extends BaseCommand {
  static override summary = 'List users (for administrators)'
  static override examples = ['$ rsm users list']
  static override flags = { limit: integer({ min: 1, helpValue: 'N', description: 'at most so many' }) }

  async run() {
    const { flags } = await this.parse(UsersList)
    this.globals = flags
    const client = await this.client()
    const page = await allPages((paging) => client.users.list(paging), {}, flags.limit)
    if (!this.globals.json) {
      const { renderTable } = await import('../../ui/table.ts')
      this.print(
        renderTable(page.content, [
          { heading: 'ID', value: (user) => user.id },
          { heading: 'USERNAME', value: (user) => user.username },
          { heading: 'ROLE', value: (user) => user.role },
          { heading: 'ENABLED', value: (user) => (user.enabled ? 'yes' : 'no') },
          { heading: 'EMAIL', value: (user) => user.email },
          { heading: 'LAST LOGIN', value: (user) => showTime(user.lastLoginAt, flags.utc) },
        ]),
      )
    }
    this.saidCut(page, 'users')
    return page
  }
}
