import { LocalCommand } from '../../cli/command/base-command.ts'
import { controlOr } from '../../cli/command/control.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/flags/service.ts'

export default class ServerConfirmClock extends LocalCommand {
  static override summary = "Confirm that a server's clock is right after a jump"
  static override description =
    'After its clock jumps by more than an hour, a server ages tasks, output, recordings, metrics and expired ' +
    'tokens only by the time that really passes. It trusts the clock after running for 24 hours, or after this ' +
    "command; the next hourly cleanup then removes everything past its retention. Run it on the server's " +
    'machine, as its user or root; it needs no token. It also works without a running server.'
  static override examples = [
    '$ rsm server confirm-clock',
    '$ rsm server confirm-clock --data-dir /var/lib/rsm/server',
  ]
  static override flags = { 'data-dir': serverDirectoryFlag }

  async run() {
    const { flags } = await this.parse(ServerConfirmClock)
    const confirmed = await controlOr(
      dataDirectory('server', flags['data-dir']),
      'confirm-clock',
      {},
      async (path) => {
        const { confirmClockOffline } = await import('../../server/app/offline.ts')
        return confirmClockOffline(path)
      },
    )
    const { serverTime, doubt } = confirmed
    this.print(
      doubt === null
        ? `the clock of the server shows ${serverTime}; it needed no confirmation`
        : `confirmed: the clock of the server shows ${serverTime}`,
    )
    return confirmed
  }
}
