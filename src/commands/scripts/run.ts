import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { gateFlags, runFlags } from '../../cli/flags/run.ts'
import { targetFlags } from '../../cli/flags/targets.ts'
import { besideStdin, stdinReader } from '../../cli/input/stdin.ts'
import { findScript } from '../../cli/names/names.ts'
import { readOrder, runOrder } from '../../cli/task/run.ts'
import { storedRunnable } from '../../cli/task/runnable.ts'

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
