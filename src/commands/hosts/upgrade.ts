import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { anyNumber } from '../../cli/flags/checks.ts'
import { runFlags } from '../../cli/flags/run.ts'
import { targetFlags } from '../../cli/flags/targets.ts'
import { stdinReader } from '../../cli/input/stdin.ts'
import { readOrder, runOrder } from '../../cli/task/run.ts'

/** Leaves out flags that only scripts have. */
const {
  param: _param,
  'secret-param': _secret,
  'run-as': _runAs,
  workdir: _workdir,
  limit: _limit,
  ...taskFlags
} = runFlags

export default class HostsUpgrade extends BaseCommand {
  static override summary = 'Upgrade the agents of hosts to the release on the server, one host first'
  static override description =
    'Without --strategy and --batch-size it upgrades one host first, then a quarter of them at a time, and ' +
    'stops at the first failure. Scripts keep running; the agents wait for open terminals to end. If the new ' +
    'version of an agent does not link, the previous one is restored. Requires the role ADMIN, and a signed ' +
    'release on the server: rsm server releases add.'
  static override examples = [
    '$ rsm hosts upgrade web1',
    "$ rsm hosts upgrade -w 'web[1-5]' --batch-size 1,10%,50% --max-failures 1",
    '$ rsm hosts upgrade -a --to 0.2.0 --plan',
  ]
  static override args = { host: anyNumber('hostname or selector, as with -w') }
  static override flags = {
    ...targetFlags,
    to: string({
      helpValue: 'VERSION',
      description: "version (default: the newest of the server's releases)",
    }),
    'allow-downgrade': boolean({ description: 'allow an older version' }),
    ...taskFlags,
    timeout: {
      ...runFlags.timeout,
      description: 'time for a host, like 90s or 5m; 0 = none (default: 30m)',
    },
    plan: { ...runFlags.plan, description: 'show the hosts and the batches; upgrade nothing' },
  }

  async run() {
    const { args, flags } = await this.parse(HostsUpgrade)
    const hosts = [...(flags.hosts ?? []), ...(args.host ?? [])]
    const isOwnPlan = flags.strategy !== undefined || flags['batch-size'] !== undefined
    const order = await readOrder(
      {
        ...flags,
        hosts: hosts.length === 0 ? undefined : hosts,
        'batch-size': isOwnPlan ? flags['batch-size'] : '1,25%',
        'max-failures': flags['max-failures'] ?? '0',
        param: undefined,
        'secret-param': undefined,
        'run-as': undefined,
        workdir: undefined,
        limit: undefined,
      },
      stdinReader(),
    )
    const { to, 'allow-downgrade': allowDowngrade } = flags
    const upgrade = { ...(to !== undefined && { version: to }), ...(allowDowngrade && { allowDowngrade }) }
    const text = `upgrade to ${to ?? 'the newest release of the server'}`
    return runOrder(this, await this.client(), order, { upgrade, text, params: [] })
  }
}
