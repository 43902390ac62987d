import { string } from '@oclif/core/args'
import { outputFlags, readShowOptions } from '../../ui/flags/output.ts'
import { exitOfTask } from '../../ui/task/outcome.ts'
import { TaskCommand } from '../../ui/task/task-command.ts'
import { watchToEnd } from '../../ui/task/watch-to-end.ts'

export default class TasksWait extends TaskCommand {
  static override summary = 'Wait until a task has ended; exits as exec does'
  static override description =
    `Output is shown, or kept in a file, in the formats that -o names, from the task's beginning.`
  static override examples = ['$ rsm tasks wait TASK', '$ rsm tasks wait TASK -o junit=report.xml']
  static override args = {
    task: string({ required: true, ignoreStdin: true, description: 'id of the task' }),
  }
  static override flags = { ...outputFlags }

  async run() {
    const { args, flags } = await this.parse(TasksWait)
    this.globals = flags
    const show = readShowOptions(flags, flags.json)
    const client = await this.client()
    const { taskId, hostCount } = await client.tasks.get(args.task)
    const outputs = this.outputs(show)
    try {
      // Nothing of the past output is wanted where none is shown.
      const query = outputs.isEmpty ? { tail: 0 } : {}
      await outputs.begin({ hostCount, alone: hostCount === 1 })
      const { task, interrupted } = await watchToEnd(client, taskId, { query, outputs })
      if (interrupted === undefined) await this.conclude(client, task, exitOfTask(task), outputs)
      else {
        process.exitCode = interrupted
        this.notice(`task ${taskId} goes on: rsm tasks wait ${taskId}`)
      }
      return task
    } finally {
      outputs.close()
    }
  }
}
