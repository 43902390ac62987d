import { boolean } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { baseDirectory } from '../../cli/contexts/private-files.ts'
import { uninstallFlags } from '../../cli/flags/service.ts'
import { systemService, userService } from '../../install/service.ts'
import { uninstall } from '../server/uninstall.ts'

export default class AgentUninstall extends LocalCommand {
  static override summary = 'Stop the agent of this host and remove its installation'
  static override description =
    'Keeps the data (its identity, and output that the server does not have yet) unless you add --remove-data. Removes ' +
    'nothing while an agent runs that systemd does not stop, e.g. one started by hand. The server keeps the host until ' +
    '`rsm hosts remove`. If a package installed rsm, remove it with the package manager.'
  static override examples = ['$ rsm agent uninstall --remove-data --yes', '$ rsm agent uninstall --user']
  static override flags = {
    user: boolean({ description: 'remove the agent that was installed with --user' }),
    ...uninstallFlags,
  }

  async run() {
    const { flags } = await this.parse(AgentUninstall)
    return uninstall(this, flags.user ? userService('agent', baseDirectory) : systemService('agent'), flags)
  }
}
