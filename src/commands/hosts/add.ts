import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refusingTaken } from '../../cli/command/failure.ts'
import { given, integer, needed } from '../../cli/flags/checks.ts'
import { credentialFlags, readCredentials, tagFlag } from '../../cli/flags/hosts.ts'
import { parsePairs } from '../../cli/input/values.ts'
import type { HostCreate } from '../../core/protocol/http/hosts.ts'

export default class HostsAdd extends BaseCommand {
  static override summary = 'Add a host before its agent joins'
  static override description = 'Afterwards use `rsm hosts join --replace HOST` or `rsm hosts install HOST`.'
  static override examples = ['$ rsm hosts add web1 --ip 192.0.2.10 -t role=web']
  static override args = { hostname: needed('name of the host') }
  static override flags = {
    ip: string({ required: true, description: 'IP address' }),
    'ssh-port': integer({ min: 1, max: 65535, description: 'SSH port (default: 22)' }),
    'ssh-user': string({ description: 'SSH user' }),
    ...credentialFlags,
    'host-key': string({
      helpValue: 'SHA256:…',
      description: 'SSH host key to expect (default: trust the first one seen)',
    }),
    tag: tagFlag('tag of the host'),
  }

  async run() {
    const { args, flags } = await this.parse(HostsAdd)
    const input: HostCreate = {
      hostname: args.hostname,
      ip: flags.ip,
      ...(await readCredentials(flags)),
      ...given({ sshPort: flags['ssh-port'], username: flags['ssh-user'], hostKey: flags['host-key'] }),
    }
    if (flags.tag !== undefined) input.tags = parsePairs('-t', flags.tag, '-t role=web')
    const client = await this.client()
    const host = await refusingTaken(
      `host ${args.hostname}`,
      `rsm hosts show ${args.hostname}`,
      client.hosts.create(input),
    )
    this.done(`added ${host.hostname} (id ${host.id})`)
    const verb = host.authType === 'NONE' ? 'join --replace' : 'install'
    this.hint(`next: rsm hosts ${verb} ${host.hostname}`)
    return host
  }
}
