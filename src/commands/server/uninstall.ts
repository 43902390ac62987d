import { needRoot } from '../../install/plan.ts'
import { findInstalled, removeInstalled } from '../../install/remove.ts'
import { systemService } from '../../install/service.ts'
import { findSystemd } from '../../install/systemd.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { uninstallFlags } from '../../ui/flags/install.ts'
import { confirmRemoval } from '../../ui/input/prompt.ts'

export default class ServerUninstall extends BaseCommand {
  static override summary = 'Stop the server of this machine and remove what rsm server install has installed'
  static override description =
    'Its data goes too, and is lost for good: users, hosts, tasks, keys, audit log. The user rsm stays. What a package ' +
    'has installed, the package manager removes.'
  static override examples = ['$ rsm server uninstall --keep-data --yes', '$ rsm server uninstall']
  static override flags = { ...uninstallFlags }

  async run() {
    const { flags } = await this.parse(ServerUninstall)
    const service = systemService('server')
    const found = findInstalled(service, flags['keep-data'])
    if (flags['dry-run']) {
      this.print(found.paths.map((path) => `would remove ${path}`).join('\n') || 'nothing to remove')
      return { removed: [] }
    }
    needRoot(service)
    if (found.paths.length > 0) {
      await confirmRemoval(found.paths.join(', '), flags.yes)
      await removeInstalled(service, findSystemd(false), found)
    }
    this.done(found.paths.length === 0 ? 'no server is installed' : `removed ${found.paths.join(', ')}`)
    return { removed: found.paths }
  }
}
