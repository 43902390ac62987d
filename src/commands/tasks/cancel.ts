import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { doToEach } from '../../cli/command/failure.ts'
import { oneOrMore } from '../../cli/flags/checks.ts'
import { findTaskId, tasksDescription } from '../../cli/names/names.ts'
import type { Client } from '../../client/client.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'

export default class TasksCancel extends BaseCommand {
  static override summary = 'Cancel tasks: pending hosts never start, running ones are stopped'
  static override examples = ['$ rsm tasks cancel TASK', '$ rsm tasks cancel latest --yes']
  static override args = { task: oneOrMore(tasksDescription) }
  static override flags = {
    yes: boolean({ char: 'y', description: 'do not ask before cancelling latest' }),
  }

  async run() {
    const { args, flags } = await this.parse(TasksCancel)
    const client = await this.client()
    const named = [...new Set(args.task)]
    const taskIds: string[] = []
    for (const name of named)
      taskIds.push(name === 'latest' ? await this.#latest(client, flags) : await findTaskId(client, name))
    const options = { nameOf: (taskId: string) => taskId, json: flags.json }
    const cancelled = await doToEach([...new Set(taskIds)], options, (taskId) => this.#cancel(client, taskId))
    return named.length === 1 ? cancelled[0] : cancelled
  }

  async #cancel(client: Client, taskId: string): Promise<Task> {
    const task = await client.tasks.cancel(taskId)
    if (task.status === 'RUNNING') {
      this.done(`${task.taskId} is being cancelled`)
      this.hint(`next: rsm tasks wait ${task.taskId}`)
    } else if (task.status === 'CANCELLED') this.done(`cancelled ${task.taskId}`)
    else this.done(`${task.taskId} has ended: ${task.status}`)
    return task
  }

  async #latest(client: Client, { yes, utc }: { yes: boolean; utc: boolean }): Promise<string> {
    const { confirmCancel, latestChosen } = await import('../../cli/task/consent.ts')
    const task = await latestChosen(client, { verb: 'cancel', yes, utc, say: (text) => this.notice(text) })
    if (!yes && task.status === 'RUNNING') await confirmCancel(task, this.serverName())
    return task.taskId
  }
}
