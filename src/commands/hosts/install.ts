import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { anyNumber, given, ifGiven } from '../../cli/flags/checks.ts'
import { hostsDescription } from '../../cli/flags/hosts.ts'
import { outputFlags, readShowOptions, refuseDetached } from '../../cli/flags/output.ts'
import { checkKey, readConcurrency, runFlags, startFlags } from '../../cli/flags/run.ts'
import { readTarget, targetFlags } from '../../cli/flags/targets.ts'
import { isSomeoneThere } from '../../cli/input/prompt.ts'
import { stdinReader } from '../../cli/input/stdin.ts'
import { parseTimer, parseWholeSeconds } from '../../cli/input/values.ts'
import { startTask } from '../../cli/task/run.ts'
import { readPin, showPin } from '../../core/endpoint.ts'

const { 'secret-param': _secret, ...begin } = startFlags

export default class HostsInstall extends BaseCommand {
  static override summary = 'Install the agent on hosts over SSH, from the server; exits as exec does'
  static override description =
    'The server logs in with the SSH credentials that it keeps for each host (`rsm hosts edit HOST --ssh-user ' +
    'root --private-key FILE`), copies its own executable, and starts an agent that joins as that host. A host is ' +
    'done once its agent is linked. The server pins the first host key that a host shows and refuses any other. ' +
    'With --sudo, a user who is not root uses sudo with the stored password. `rsm tasks retry` repeats it for the ' +
    'hosts that failed.'
  static override examples = [
    '$ rsm hosts install web1',
    "$ rsm hosts install -w 'web[1-3]' --sudo --forget-credentials",
  ]
  static override args = { host: anyNumber(hostsDescription) }
  static override flags = {
    ...targetFlags,
    sudo: boolean({ description: 'become root with sudo, if the SSH user is not root' }),
    'forget-credentials': boolean({
      description: 'remove the stored password and key of the host afterwards',
    }),
    ...begin,
    concurrency: runFlags.concurrency,
    timeout: string({
      helpGroup: 'RUN',
      char: 'u',
      helpValue: 'TIME',
      description: 'time for a host, like 90, 90s, 5m; 0 = none (default: 15m)',
    }),
    ...outputFlags,
  }

  async run() {
    const { args, flags } = await this.parse(HostsInstall)
    const show = readShowOptions(flags, flags.json, 'live')
    refuseDetached(flags.detach, show)
    checkKey(flags['idempotency-key'])
    const deadline = ifGiven(flags.deadline, (text) => parseTimer('--deadline', text))
    const options = given({
      concurrency: ifGiven(flags.concurrency, readConcurrency),
      timeout: ifGiven(flags.timeout, (text) => parseWholeSeconds('--timeout', text)),
    })
    const hosts = [...(args.host ?? []), ...(flags.hosts ?? [])]
    const named = hosts.length === 0 ? flags : { ...flags, hosts }
    const asked = await readTarget(named, () => stdinReader()('the names of -w -'))
    const client = await this.client()
    const { tlsFingerprint } = this.server()
    const install = given({
      sudo: flags.sudo || undefined,
      forgetCredentials: flags['forget-credentials'] || undefined,
      url: client.api.url,
      fingerprint: ifGiven(tlsFingerprint, (pin) => showPin(readPin(pin))),
    })
    const target =
      flags.yes || !isSomeoneThere()
        ? asked
        : await (await import('../../cli/task/consent.ts')).confirmTarget(client, asked, {
            action: 'Install the agent',
            server: this.serverName(),
          })
    const body = { install, target, ...options, async: true }
    return startTask(this, client, { ...flags, show, deadline }, (key, signal) =>
      client.tasks.create(body, key, signal),
    )
  }
}
