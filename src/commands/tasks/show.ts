import { string } from '@oclif/core/args'
import { BaseCommand } from '../../ui/base-command.ts'
import { showDuration, showTime } from '../../ui/time.ts'

export default class TasksShow extends BaseCommand {
  static override summary = 'Show a task and how it went on each host'
  static override examples = ['$ rsm tasks show TASK']
  static override args = {
    task: string({ required: true, ignoreStdin: true, description: 'id of the task' }),
  }

  async run() {
    const { args, flags } = await this.parse(TasksShow)
    this.globals = flags
    const client = await this.client()
    const task = await client.tasks.get(args.task)
    if (this.globals.json) return task
    const { renderFields, renderTable } = await import('../../ui/table.ts')
    this.print(
      renderFields({
        task: task.taskId,
        status: task.status,
        script: task.scriptName === null ? task.type : `${task.scriptName} (${task.type})`,
        strategy: task.strategy,
        by: task.createdBy,
        created: showTime(task.createdAt, flags.utc),
        ended: showTime(task.completedAt, flags.utc),
        took: showDuration(task.duration),
      }),
    )
    const table = renderTable(task.results, [
      { heading: 'HOST', value: (result) => result.hostname },
      { heading: 'STATUS', value: (result) => result.status },
      { heading: 'EXIT', value: (result) => result.exitCode },
      { heading: 'TOOK', value: (result) => showDuration(result.duration) },
      { heading: 'ERROR', value: (result) => result.error ?? '' },
    ])
    this.print(`\n${table}`)
    return task
  }
}
