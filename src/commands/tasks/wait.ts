import { string } from '@oclif/core/args'
import { watchTask } from '../../client/watch.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { exitOfTask, failureLines, summaryLine } from '../../ui/task/outcome.ts'
import { withSpinner } from '../../ui/text/spinner.ts'

export default class TasksWait extends BaseCommand {
  static override summary = 'Wait until a task has ended; exits as exec does'
  static override examples = ['$ rsm tasks wait TASK']
  static override args = {
    task: string({ required: true, ignoreStdin: true, description: 'id of the task' }),
  }

  async run() {
    const { args, flags } = await this.parse(TasksWait)
    this.globals = flags
    const client = await this.client()
    let task = await client.tasks.get(args.task)
    if (task.status === 'RUNNING') {
      // Nothing of the past output is wanted; the end is what is waited for.
      const events = watchTask(client.api, task.taskId, {
        query: { tail: 0 },
        onCut: (error) => this.notice(`${error.message}; trying again for 5 minutes`),
      })
      const ended = async () => {
        for await (const event of events) if (event.type === 'end') return
      }
      if (flags.quiet) await ended()
      else await withSpinner(`waiting for ${task.taskId}`, ended)
      task = await client.tasks.get(args.task)
    }
    for (const line of failureLines(task)) process.stderr.write(`rsm: ${line}\n`)
    this.notice(summaryLine(task))
    process.exitCode = exitOfTask(task)
    return task
  }
}
