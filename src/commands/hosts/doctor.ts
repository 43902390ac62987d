import { string } from '@oclif/core/args'
import { findHost } from '../../client/names.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'

/** What to do about the state of a host, in one sentence. */
function advice(host: Host, url: string): string {
  if (host.agent === null) return `no agent has joined it: rsm hosts join --replace ${host.hostname}`
  switch (host.status) {
    case 'ONLINE':
      return host.agent.connected
        ? 'nothing to do'
        : 'its agent heartbeats and links when there is work; a task waits for it up to 2 minutes'
    case 'WARNING':
      return 'it runs tasks; look after what the reason names'
    case 'OFFLINE':
      if (host.statusReason?.includes('revoked') === true)
        return `stop the former agent there, then join anew: rsm hosts join --replace ${host.hostname}`
      return `on the host: does the agent run, and does it reach ${url}?`
  }
}

export default class HostsDoctor extends BaseCommand {
  static override summary = 'Say why a host is not ONLINE and what to do'
  static override examples = ['$ rsm hosts doctor web1']
  static override args = {
    host: string({ required: true, ignoreStdin: true, description: 'hostname, or @id:17' }),
  }

  async run() {
    const { args, flags } = await this.parse(HostsDoctor)
    this.globals = flags
    const client = await this.client()
    const host = await findHost(client, args.host)
    const { id, hostname, status, statusReason } = host
    const next = advice(host, client.api.url)
    this.print(`${hostname} is ${status}${statusReason === null ? '' : `: ${statusReason}`}`)
    this.print(next)
    return { id, hostname, status, statusReason, advice: next }
  }
}
