import { LocalCommand } from '../../cli/command/base-command.ts'
import { control } from '../../cli/command/control.ts'
import { needed } from '../../cli/flags/checks.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/flags/service.ts'
import { type LogLevel, logLevels } from '../../core/protocol/control.ts'

export default class ServerLogLevel extends LocalCommand {
  static override summary = 'Change the log level of a running server, until it stops'
  static override description = "Run it on the server's machine, as its user or root; it needs no token."
  static override examples = [
    '$ rsm server log-level DEBUG',
    '$ rsm server log-level INFO --data-dir /var/lib/rsm/server',
  ]
  static override args = {
    level: needed('log level on stderr', { options: [...logLevels] }),
  }
  static override flags = { 'data-dir': serverDirectoryFlag }

  async run() {
    const { args, flags } = await this.parse(ServerLogLevel)
    const level = args.level as LogLevel
    const changed = await control(dataDirectory('server', flags['data-dir']), 'log-level', { level })
    this.done(`the log level is ${changed.level}; it was ${changed.before}`)
    return changed
  }
}
