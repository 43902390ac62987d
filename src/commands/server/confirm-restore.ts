import { boolean } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { controlOr } from '../../cli/command/control.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/flags/service.ts'
import { counted } from '../../cli/text/amounts.ts'

export default class ServerConfirmRestore extends LocalCommand {
  static override summary = 'Start the tasks that a restored server holds, or cancel them'
  static override description =
    'When a server notices that its data directory is older than what its agents have seen, it holds every ' +
    'execution that had not started, because each may have run since the backup. `rsm hosts doctor` and GET ' +
    '/api/server/status report it. This command starts them, or cancels them with --cancel-pending. Run it on ' +
    "the server's machine, as its user or root; it needs no token. Without a running server, they start with " +
    'the next start of the server.'
  static override examples = [
    '$ rsm server confirm-restore --cancel-pending',
    '$ rsm server confirm-restore --data-dir /var/lib/rsm/server',
  ]
  static override flags = {
    'cancel-pending': boolean({ description: 'cancel the held tasks instead of starting them' }),
    'data-dir': serverDirectoryFlag,
  }

  async run() {
    const { flags } = await this.parse(ServerConfirmRestore)
    const cancelPending = flags['cancel-pending']
    const confirmed = await controlOr(
      dataDirectory('server', flags['data-dir']),
      'confirm-restore',
      { cancelPending },
      async (path) => {
        const { confirmRestoreOffline } = await import('../../server/app/offline.ts')
        return confirmRestoreOffline(path, cancelPending)
      },
    )
    const { tasks, executions, cancelled } = confirmed
    const what = `${counted(executions, 'execution')} of ${counted(tasks, 'task')}`
    this.print(cancelled ? `cancelled ${what}` : `continuing with ${what}`)
    return confirmed
  }
}
