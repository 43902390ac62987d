import { existsSync } from 'node:fs'
import { type BaseCommand, LocalCommand } from '../../cli/command/base-command.ts'
import { uninstallFlags } from '../../cli/flags/service.ts'
import { confirmRemoval } from '../../cli/input/prompt.ts'
import { accountOf } from '../../install/change.ts'
import { needRoot } from '../../install/plan.ts'
import { findInstalled, removeInstalled } from '../../install/remove.ts'
import { type Service, systemService } from '../../install/service.ts'
import { findSystemd } from '../../install/systemd.ts'

const account = 'rsm'

interface UninstallFlags {
  readonly 'remove-data': boolean
  readonly 'dry-run': boolean
  readonly yes: boolean
}

export async function uninstall(command: BaseCommand, service: Service, flags: UninstallFlags) {
  const found = findInstalled(service, flags['remove-data'])
  const { paths, dataDir } = found
  const kept = !paths.includes(dataDir) && existsSync(dataDir) ? dataDir : null
  if (flags['dry-run']) {
    command.print(paths.map((path) => `would remove ${path}`).join('\n') || 'nothing to remove')
    if (kept !== null) command.print(`would keep ${kept} (--remove-data removes it)`)
    return { removed: [], kept }
  }
  needRoot(service)
  if (paths.length === 0) {
    const data = kept === null ? '' : `; data in ${kept}: --remove-data removes it`
    command.done(`no ${service.name} is installed${data}`)
    return { removed: [], kept }
  }
  await confirmRemoval(paths.join(', '), flags.yes)
  await removeInstalled(service, findSystemd(service.isUsers), found)
  command.done(`removed ${paths.join(', ')}`)
  if (kept !== null) command.done(`kept the data: ${kept}`)
  if (service.name === 'server' && accountOf(account) !== null)
    command.done(`kept the user ${account}: userdel ${account} removes it`)
  return { removed: paths, kept }
}

export default class ServerUninstall extends LocalCommand {
  static override summary = 'Stop the server of this machine and remove its installation'
  static override description =
    'Keeps the data (users, hosts, tasks, keys, audit log) unless you add --remove-data. Keeps the user rsm; userdel rsm ' +
    'removes it. Removes nothing while a server runs that systemd does not stop, e.g. one started by hand. If a package ' +
    'installed rsm, remove it with the package manager.'
  static override examples = ['$ rsm server uninstall --yes', '$ rsm server uninstall --remove-data']
  static override flags = { ...uninstallFlags }

  async run() {
    const { flags } = await this.parse(ServerUninstall)
    return uninstall(this, systemService('server'), flags)
  }
}
