import { BaseCommand } from '../../cli/command/base-command.ts'
import { oneOrMore } from '../../cli/flags/checks.ts'
import { outputFlags, readShowOptions, type ShowOptions } from '../../cli/flags/output.ts'
import { findTaskId, tasksDescription } from '../../cli/names/names.ts'
import { conclude, followTask, taskOutputs } from '../../cli/task/run.ts'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'

/** Refuses output flags for several tasks, because a report covers one task. */
function refuseSeveral(tasks: readonly string[], { format, files, outdir }: ShowOptions): void {
  if (tasks.length > 1 && (format !== undefined || files.length > 0 || outdir !== undefined))
    throw new RsmError('usage', `-o shows the output of one task, not of ${tasks.length}`, {
      hint: `name one: rsm tasks wait ${tasks[0] ?? 'TASK'} -o FORMAT`,
    })
}

export default class TasksWait extends BaseCommand {
  static override summary = 'Wait until tasks have ended; exits as exec does'
  static override description =
    `For several tasks, the exit code is that of the first named task that did not succeed. --json prints the task, or
{"tasks": [...]} for several.
For one task, -o shows its output or writes it to a file, from the beginning of the task.`
  static override examples = [
    '$ rsm tasks wait TASK',
    '$ rsm tasks wait TASK1 TASK2',
    '$ rsm tasks wait TASK -o junit=report.xml',
  ]
  static override args = { task: oneOrMore(tasksDescription) }
  static override flags = { ...outputFlags }

  async run() {
    const { args, flags } = await this.parse(TasksWait)
    const show = readShowOptions(flags, flags.json)
    const named = [...new Set(args.task)]
    refuseSeveral(named, show)
    const client = await this.client()
    // Look up all tasks first, so that a mistyped id is reported before the wait.
    const known = await Promise.all(
      named.map(async (each) => client.tasks.get(await findTaskId(client, each), { size: 1 })),
    )
    const tasks: Task[] = []
    let exit = 0
    for (const task of known) {
      const followed = await this.#ended(client, task, show)
      tasks.push(followed.task)
      exit ||= followed.isHalted ? followed.exit : Number(process.exitCode ?? 0)
      if (followed.isHalted) break
    }
    process.exitCode = exit
    const [only] = tasks
    return named.length === 1 ? only : { tasks }
  }

  async #ended(client: Client, { taskId, hostCount }: Task, show: ShowOptions) {
    const outputs = taskOutputs(this, show)
    const followed = await followTask({
      client,
      outputs,
      signals: 'leave',
      // Skip past output if none is shown.
      query: outputs.isEmpty ? { tail: 0 } : {},
      start: async () => ({ taskId, hostCount }),
      resume: () => `rsm tasks wait ${taskId}`,
    })
    if (!followed.isHalted) await conclude(this, client, followed.task, followed.exit, outputs)
    return followed
  }
}
