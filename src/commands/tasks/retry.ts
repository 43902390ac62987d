import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { outputFlags, readShowOptions, refuseDetached } from '../../cli/flags/output.ts'
import { askSecrets, checkKey, readSecrets, startFlags } from '../../cli/flags/run.ts'
import { isSomeoneThere } from '../../cli/input/prompt.ts'
import { parseTimer } from '../../cli/input/values.ts'
import { findTaskId, taskDescription } from '../../cli/names/names.ts'
import { startTask } from '../../cli/task/run.ts'
import { counted } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import type { Client } from '../../client/client.ts'
import type { Task, TaskScript } from '../../core/protocol/http/tasks.ts'
import { runsScript } from '../../core/tasks/task.ts'

function againOf(
  { scriptName, firstLine, type }: Task,
  script: TaskScript | null,
  quoted: (content: string) => string,
): string {
  if (script === null) return sanitizeLine(`Again ${firstLine ?? type}`)
  return `Run ${scriptName === null ? quoted(script.content) : `script ${sanitizeLine(scriptName)}`} again`
}

export default class TasksRetry extends BaseCommand {
  static override summary = 'Run a task again on the hosts that did not succeed; exits as exec does'
  static override description = `Creates a new task with the same text, params and options.
Secret params are not kept: rsm asks for them, or takes them from the environment with --secret-param.`
  static override examples = [
    '$ rsm tasks retry TASK',
    '$ rsm tasks retry latest --yes',
    '$ rsm tasks retry TASK --secret-param DB_PASSWORD --detach',
  ]
  static override args = { task: needed(taskDescription) }
  static override flags = { ...startFlags, ...outputFlags }

  async run() {
    const { args, flags } = await this.parse(TasksRetry)
    const deadline = flags.deadline === undefined ? undefined : parseTimer('--deadline', flags.deadline)
    checkKey(flags['idempotency-key'])
    const show = readShowOptions(flags, flags.json, 'live')
    refuseDetached(flags.detach, show)
    const client = await this.client()
    const isLatest = args.task === 'latest'
    const taskId = isLatest ? await this.#latest(client, flags) : await findTaskId(client, args.task)
    const previous = await client.tasks.get(taskId, { page: 0, size: 1 })
    const script = runsScript(previous.type) ? await client.tasks.script(taskId) : null
    if (!flags.yes && isSomeoneThere()) {
      const { confirmRetry, quotedBeginning } = await import('../../cli/task/consent.ts')
      const intent = { action: againOf(previous, script, quotedBeginning), server: this.serverName() }
      await confirmRetry(client, previous.taskId, intent, isLatest)
    }
    const named = flags['secret-param'] ?? []
    const unnamed = (script?.secretParams ?? []).filter((name) => !named.includes(name))
    const secretParams = {
      ...(await readSecrets(named)),
      ...(await askSecrets(previous.taskId, unnamed)),
    }
    const input = { async: true, ...(Object.keys(secretParams).length === 0 ? {} : { secretParams }) }
    return startTask(
      this,
      client,
      { ...flags, show, deadline },
      (key, signal) => client.tasks.retry(previous.taskId, input, key, signal),
      ({ taskId, hostCount }) =>
        this.notice(`retry of ${previous.taskId} on ${counted(hostCount, 'host')}: task ${taskId}`),
    )
  }

  async #latest(client: Client, { yes, utc }: { yes: boolean; utc: boolean }): Promise<string> {
    const { latestChosen } = await import('../../cli/task/consent.ts')
    const task = await latestChosen(client, { verb: 'retry', yes, utc, say: (text) => this.notice(text) })
    return task.taskId
  }
}
