import { BaseCommand } from '../../ui/command/base-command.ts'
import { needed } from '../../ui/flags/checks.ts'
import { gateFlags } from '../../ui/flags/gates.ts'
import { runFlags } from '../../ui/flags/run.ts'
import { targetFlags } from '../../ui/flags/targets.ts'
import { stdinReader } from '../../ui/input/stdin.ts'
import { findScript } from '../../ui/names/names.ts'
import { besideStdin, readOrder, runOrder } from '../../ui/task/run.ts'
import { storedRunnable } from '../../ui/task/runnable.ts'

export default class ScriptsRun extends BaseCommand {
  static override summary = 'Run a stored script on hosts'
  static override description =
    'On a terminal, rsm asks for missing params that the script declares; `rsm scripts show` lists them.'
  static override examples = ["$ rsm scripts run deploy -w 'web[1-3]' -p VERSION=1.2.3"]
  static override args = { script: needed('name of the script') }
  static override flags = { ...targetFlags, ...runFlags, ...gateFlags }

  async run() {
    const { args, flags } = await this.parse(ScriptsRun)
    const stdin = stdinReader()
    const order = await readOrder(flags, stdin, (text) => this.notice(text))
    const client = await this.client()
    return besideStdin(this, stdin, '', async () => {
      const script = await findScript(client, args.script)
      return runOrder(this, client, order, await storedRunnable(script))
    })
  }
}
