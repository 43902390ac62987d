import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { given } from '../../cli/flags/checks.ts'
import { refuseUnknownUser } from '../../cli/names/names.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { timeColumn } from '../../cli/text/time.ts'
import { allPages } from '../../client/http/pages.ts'
import type { Upload } from '../../core/protocol/http/files.ts'

export default class FilesList extends BaseCommand {
  static override summary = 'List uploads on the server, largest first'
  static override description =
    'Lists your own; an administrator sees those of all users. `rsm cp` to hosts and --stdin upload files. The server removes a file with the last task that used it, or after 24 h.'
  static override examples = ['$ rsm files list', '$ rsm files list --user ann --limit 20']
  static override flags = {
    user: string({ helpValue: 'USER', description: 'only uploads of this user' }),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(FilesList)
    const client = await this.client()
    const page = await allPages(
      (paging) => client.files.list(paging),
      given({ user: flags.user }),
      flags.limit,
    )
    if (page.totalElements === 0) await refuseUnknownUser(client, flags.user)
    return showList<Upload>(this, page, {
      noun: 'uploads',
      filtered: flags.user !== undefined,
      none: 'no uploads',
      columns: [
        {
          heading: 'FILE',
          value: ({ fileId }) => fileId,
          essential: true,
          shortest: ({ fileId }) => fileId.slice(-6),
        },
        { heading: 'SIZE', value: ({ offset }) => showBytes(offset), essential: true },
        { heading: 'USER', value: ({ user }) => user, essential: true },
        timeColumn('UPLOADED', ({ createdAt }) => createdAt, flags.utc),
        { heading: 'STATE', value: ({ isComplete }) => (isComplete ? 'complete' : 'partial') },
        { heading: 'NAME', value: ({ name }) => name },
      ],
    })
  }
}
