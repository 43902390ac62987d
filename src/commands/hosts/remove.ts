import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { removalFlags, removeAll } from '../../cli/command/removal.ts'
import { oneOrMore } from '../../cli/flags/checks.ts'
import { hostsDescription } from '../../cli/flags/hosts.ts'
import { showOpenEnrollments } from '../../cli/hosts/revocation.ts'
import { findHosts, namesOneHost } from '../../cli/names/names.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'

export default class HostsRemove extends BaseCommand {
  static override summary = 'Remove hosts and revoke their agents'
  static override description =
    'Their agents cannot link again until `rsm hosts join` creates a newer enrollment token. A machine whose agent ' +
    'directory was wiped counts as a new host: every open enrollment token lets it in, and this command lists them.'
  static override examples = ['$ rsm hosts remove web1 --yes', "$ rsm hosts remove 'web[4-5]' --yes"]
  static override args = { host: oneOrMore(hostsDescription) }
  static override flags = {
    force: boolean({ description: 'remove it even if scripts run there; they become LOST' }),
    ...removalFlags,
  }

  async run() {
    const { args, flags } = await this.parse(HostsRemove)
    const client = await this.client()
    const removed = await removeAll(
      this,
      await findHosts(client, args.host),
      {
        noun: 'host',
        nameOf: (host: Host) => host.hostname,
        remove: ({ id }) => client.hosts.remove(id, flags.force ? { force: true } : {}),
      },
      flags.yes,
    )
    const open = showOpenEnrollments(removed.at(-1)?.openEnrollments ?? [], flags.utc)
    if (open !== null) this.notice(open)
    return namesOneHost(args.host) ? removed[0] : removed
  }
}
