import { string } from '@oclif/core/args'
import { BaseCommand } from '../../ui/base-command.ts'

export default class TasksCancel extends BaseCommand {
  static override summary = 'Cancel a task: queued hosts never start, running ones end'
  static override examples = ['$ rsm tasks cancel TASK']
  static override args = {
    task: string({ required: true, ignoreStdin: true, description: 'id of the task' }),
  }

  async run() {
    const { args, flags } = await this.parse(TasksCancel)
    this.globals = flags
    const client = await this.client()
    const task = await client.tasks.cancel(args.task)
    this.print(`cancelled ${task.taskId} (${task.status})`)
    return task
  }
}
