import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { control } from '../../ui/command/control.ts'
import { dataDirectory, dataDirectoryHelp } from '../../ui/command/directories.ts'

export default class ServerConfirmClock extends BaseCommand {
  static override summary = "Say that a server's clock is right after it has jumped"
  static override description =
    'After a jump of its clock by more than an hour a server removes nothing for its age but by the time that passes: ' +
    'tasks, output, recordings, metrics, expired tokens. It believes the clock after 24 hours of running, or when this ' +
    'says that it is right: then what is past its time goes at once. It runs on the machine of the server, as its user ' +
    'or root, and needs no token.'
  static override examples = [
    '$ rsm server confirm-clock',
    '$ rsm server confirm-clock --data-dir /var/lib/rsm/server',
  ]
  static override flags = {
    'data-dir': string({
      env: 'RSM_DATA_DIR',
      helpValue: 'DIR',
      description: `data directory of the server; ${dataDirectoryHelp('server')}`,
    }),
  }

  async run() {
    const { flags } = await this.parse(ServerConfirmClock)
    this.globals = flags
    const confirmed = await control(dataDirectory('server', flags['data-dir']), 'confirm-clock', {})
    const { serverTime, doubt } = confirmed
    this.print(
      doubt === null
        ? `the clock of the server shows ${serverTime}; it was not doubted`
        : `confirmed: the clock of the server shows ${serverTime}`,
    )
    return confirmed
  }
}
