import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { confirmRevocation, showOpenEnrollments } from '../../cli/hosts/revocation.ts'
import { findHost } from '../../cli/names/names.ts'
import { RsmError } from '../../core/errors.ts'

export default class HostsRevoke extends BaseCommand {
  static override summary = "Revoke a host's agent: invalidate its token and close its link"
  static override description =
    'The host and its records stay. `rsm hosts join --replace HOST` prints the line that enrolls it again; enrollment ' +
    'tokens created earlier do not let this agent in.'
  static override examples = ['$ rsm hosts revoke web1 --yes']
  static override args = { host: needed('hostname, or @id:17') }
  static override flags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

  async run() {
    const { args, flags } = await this.parse(HostsRevoke)
    const client = await this.client()
    const host = await findHost(client, args.host)
    const again = `rsm hosts join --replace ${host.hostname}`
    const nothing = () =>
      new RsmError('not_found', `${host.hostname} has no agent to revoke`, {
        hint: `to enroll one: ${again}`,
      })
    if (host.agent === null) throw nothing()
    await confirmRevocation(host, flags.yes)
    const revoked = await client.hosts.revokeAgent(host.id).catch((error: unknown) => {
      throw error instanceof RsmError && error.code === 'not_found' ? nothing() : error
    })
    this.done(`revoked the agent of ${host.hostname}`)
    const open = showOpenEnrollments(revoked.openEnrollments, flags.utc)
    if (open !== null) this.notice(open)
    this.hint(`to enroll it again: ${again}`)
    return revoked
  }
}
