import { string } from '@oclif/core/args'
import { BaseCommand } from '../../ui/command/base-command.ts'

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
    if (task.status === 'RUNNING') {
      this.print(`${task.taskId} is being cancelled`)
      this.hint(`next: rsm tasks wait ${task.taskId}`)
    } else if (task.status === 'CANCELLED') this.print(`cancelled ${task.taskId}`)
    else this.print(`${task.taskId} has ended: ${task.status}`)
    return task
  }
}
