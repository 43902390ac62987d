import { boolean } from '@oclif/core/flags'
import { needRoot } from '../../install/plan.ts'
import { findInstalled, removeInstalled } from '../../install/remove.ts'
import { systemService, userService } from '../../install/service.ts'
import { findSystemd } from '../../install/systemd.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { baseDirectory } from '../../ui/contexts/base-directory.ts'
import { uninstallFlags } from '../../ui/flags/install.ts'
import { confirmRemoval } from '../../ui/input/prompt.ts'

export default class AgentUninstall extends BaseCommand {
  static override summary = 'Stop the agent of this host and remove what rsm agent install has installed'
  static override description =
    'Its data goes too: identity, and output that the server does not have yet. The server keeps the host until ' +
    '`rsm hosts remove`. What a package has installed, the package manager removes.'
  static override examples = ['$ rsm agent uninstall --keep-data --yes', '$ rsm agent uninstall --user']
  static override flags = {
    user: boolean({ description: 'remove the agent that was installed with --user' }),
    ...uninstallFlags,
  }

  async run() {
    const { flags } = await this.parse(AgentUninstall)
    const service = flags.user ? userService('agent', baseDirectory) : systemService('agent')
    const found = findInstalled(service, flags['keep-data'])
    if (flags['dry-run']) {
      this.print(found.paths.map((path) => `would remove ${path}`).join('\n') || 'nothing to remove')
      return { removed: [] }
    }
    needRoot(service)
    if (found.paths.length > 0) {
      await confirmRemoval(found.paths.join(', '), flags.yes)
      await removeInstalled(service, findSystemd(service.isUsers), found)
    }
    this.done(found.paths.length === 0 ? 'no agent is installed' : `removed ${found.paths.join(', ')}`)
    return { removed: found.paths }
  }
}
