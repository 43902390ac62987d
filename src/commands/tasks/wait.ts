import { string } from '@oclif/core/args'
import type { Client } from '../../client/client.ts'
import { watchTask } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { exitOfTask, failureLines, summaryLine } from '../../ui/task/outcome.ts'
import { withSpinner } from '../../ui/text/spinner.ts'

export default class TasksWait extends BaseCommand {
  static override summary = 'Wait until tasks have ended; exits as exec does'
  static override description =
    'Of several tasks the exit code is that of the first named that did not succeed. --json prints the task; of several {"tasks": [...]}.'
  static override examples = ['$ rsm tasks wait TASK', '$ rsm tasks wait TASK1 TASK2']
  static override args = {
    task: string({ required: true, multiple: true, ignoreStdin: true, description: 'ids of the tasks' }),
  }

  async run() {
    const { args, flags } = await this.parse(TasksWait)
    this.globals = flags
    const client = await this.client()
    // All are looked up first: a mistyped id is told at once, not after the others have ended.
    const known = await Promise.all([...new Set(args.task)].map((id) => client.tasks.get(id)))
    const tasks: Task[] = []
    for (const former of known) {
      const task = await this.#ended(client, former)
      for (const line of failureLines(task)) process.stderr.write(`rsm: ${line}\n`)
      this.notice(summaryLine(task))
      tasks.push(task)
    }
    process.exitCode = tasks.map(exitOfTask).find((exit) => exit !== 0) ?? 0
    const [only] = tasks
    return tasks.length === 1 ? only : { tasks }
  }

  async #ended(client: Client, task: Task): Promise<Task> {
    if (task.status !== 'RUNNING') return task
    // Nothing of the past output is wanted; the end is what is waited for.
    const events = watchTask(client.api, task.taskId, {
      query: { tail: 0 },
      onCut: (error) => this.notice(`${error.message}; trying again for 5 minutes`),
    })
    const ended = async () => {
      for await (const event of events) if (event.type === 'end') return
    }
    if (this.globals.quiet) await ended()
    else await withSpinner(`waiting for ${task.taskId}`, ended)
    return client.tasks.get(task.taskId)
  }
}
