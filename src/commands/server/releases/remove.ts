import { boolean } from '@oclif/core/flags'
import { LocalCommand } from '../../../cli/command/base-command.ts'
import { control } from '../../../cli/command/control.ts'
import { needed } from '../../../cli/flags/checks.ts'
import { dataDirectory, serverDirectoryFlag } from '../../../cli/flags/service.ts'
import { confirmRemoval } from '../../../cli/input/prompt.ts'

export default class ServerReleasesRemove extends LocalCommand {
  static override summary = 'Stop offering an added executable and its .xz'
  static override examples = [
    '$ rsm server releases remove rsm-linux-arm64 --yes',
    '$ rsm server releases remove rsm-linux-arm64 --data-dir /var/lib/rsm/server',
  ]
  static override args = {
    name: needed('name of the executable, as listed'),
  }
  static override flags = {
    yes: boolean({ char: 'y', description: 'do not ask' }),
    'data-dir': serverDirectoryFlag,
  }

  async run() {
    const { args, flags } = await this.parse(ServerReleasesRemove)
    await confirmRemoval(args.name, flags.yes)
    const removed = await control(dataDirectory('server', flags['data-dir']), 'releases-remove', {
      name: args.name,
    })
    this.done(`the server no longer offers ${removed.name}`)
    return removed
  }
}
