import { string as word } from '@oclif/core/args'
import { boolean, integer, string } from '@oclif/core/flags'
import type { Client } from '../client/client.ts'
import { watchTask } from '../client/watch.ts'
import { RsmError } from '../core/errors.ts'
import { unknownName } from '../core/nearest.ts'
import type { LogEntry, LogQuery, Task } from '../core/protocol/http/tasks.ts'
import { BaseCommand } from '../ui/command/base-command.ts'
import { LiveOutput } from '../ui/output/live.ts'
import { sinkOf } from '../ui/output/sink.ts'

function hostIdOf(task: Task, hostname: string): number {
  const found = task.results.find((result) => result.hostname.toLowerCase() === hostname.toLowerCase())
  if (found !== undefined) return found.hostId
  const names = task.results.map((result) => result.hostname)
  throw new RsmError('not_found', unknownName('host in this task', hostname, names))
}

/** All pages of a log from where the query begins. */
async function* pagesOf(client: Client, taskId: string, query: LogQuery): AsyncGenerator<LogEntry[]> {
  let next = query
  for (;;) {
    const page = await client.tasks.logs(taskId, next)
    if (page.entries.length === 0) return
    yield page.entries
    const { tail: _, ...rest } = next
    next = { ...rest, after: page.next }
  }
}

export default class Logs extends BaseCommand {
  static override summary = 'Show the output of a task'
  static override examples = ['$ rsm logs TASK', '$ rsm logs -f TASK --host web1 --timestamps']
  static override args = { task: word({ required: true, ignoreStdin: true, description: 'id of the task' }) }
  static override flags = {
    follow: boolean({ char: 'f', description: 'go on until the task has ended' }),
    after: integer({ min: 0, helpValue: 'ID', description: 'only entries after this one' }),
    host: string({ char: 'w', helpValue: 'HOST', description: 'only of this host' }),
    stream: string({ options: ['stdout', 'stderr'], description: 'only this stream' }),
    tail: integer({ min: 0, helpValue: 'N', description: 'only the last N' }),
    timestamps: boolean({ description: 'when each line came' }),
    'no-prefix': boolean({ char: 'N', description: 'no host name before the lines' }),
    raw: boolean({ description: 'let control sequences of the hosts through' }),
  }

  async run() {
    const { args, flags } = await this.parse(Logs)
    this.globals = flags
    if (flags.json && flags.follow)
      throw new RsmError('usage', '--json shows a log as it stands; it does not follow', {
        hint: 'leave out -f',
      })
    const client = await this.client()
    const task = await client.tasks.get(args.task)
    const query: LogQuery = {}
    if (flags.after !== undefined) query.after = flags.after
    if (flags.host !== undefined) query.hostId = hostIdOf(task, flags.host)
    if (flags.stream !== undefined) query.stream = flags.stream as NonNullable<LogQuery['stream']>
    if (flags.tail !== undefined) query.tail = flags.tail
    if (flags.json) {
      const entries: LogEntry[] = []
      for await (const page of pagesOf(client, task.taskId, query)) entries.push(...page)
      return { taskId: task.taskId, entries, next: entries.at(-1)?.id ?? flags.after ?? 0 }
    }
    const output = new LiveOutput({
      stdout: sinkOf(process.stdout),
      stderr: sinkOf(process.stderr),
      prefix: !flags['no-prefix'],
      raw: flags.raw,
      alone: query.hostId !== undefined || task.hostCount === 1,
      timestamps: flags.timestamps ? { utc: flags.utc } : undefined,
    })
    if (flags.follow) {
      const onCut = (error: RsmError) => this.notice(`${error.message}; trying again for 5 minutes`)
      for await (const event of watchTask(client.api, task.taskId, { query, onCut }))
        await output.event(event)
    } else {
      for await (const page of pagesOf(client, task.taskId, query))
        for (const entry of page) await output.event({ type: 'output', entry })
    }
    await output.end()
    return undefined
  }
}
