import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../cli/command/base-command.ts'
import { failureOf, reportFailure } from '../cli/command/failure.ts'
import { given, integer, needed } from '../cli/flags/checks.ts'
import { outputFlags, readShowOptions } from '../cli/flags/output.ts'
import { findTaskId, taskDescription } from '../cli/names/names.ts'
import { scriptText } from '../cli/task/consent.ts'
import { followTask } from '../cli/task/run.ts'
import { TaskDisplay } from '../cli/task/task-display.ts'
import type { Client } from '../client/client.ts'
import { mostTailLines, readTail } from '../client/log-tail.ts'
import { exitCode, RsmError } from '../core/errors.ts'
import type { LogEntry, LogQuery } from '../core/protocol/http/logs.ts'
import type { Task } from '../core/protocol/http/tasks.ts'
import { unknownName } from '../core/text/nearest.ts'

function hostIdOf(task: Task, hostname: string): number {
  const found = task.results.find((result) => result.hostname.toLowerCase() === hostname.toLowerCase())
  if (found !== undefined) return found.hostId
  const names = task.results.map((result) => result.hostname)
  throw new RsmError('not_found', unknownName('host in this task', hostname, names))
}

/** Pages of a log from the start of the query to the current end, so that it ends while a task writes more. */
async function* pagesOf(
  client: Client,
  { taskId, status }: Task,
  query: LogQuery,
): AsyncGenerator<LogEntry[]> {
  const last = { before: Number.MAX_SAFE_INTEGER, size: 1 }
  const end = status === 'RUNNING' ? (await client.tasks.logs(taskId, last)).next : Number.POSITIVE_INFINITY
  for (let next = query; (next.after ?? 0) < end; ) {
    const page = await client.tasks.logs(taskId, next)
    if (page.entries.length === 0) return
    yield page.entries
    next = { ...next, after: page.next }
  }
}

/** Flags that continue after the last entry shown. */
function resumption(host: string | undefined, last: number | undefined): string {
  return `${host === undefined ? '' : ` -w ${host}`}${last === undefined ? '' : ` --after ${last}`}`
}

export default class Logs extends BaseCommand {
  static override summary = 'Show the output of a task'
  static override examples = [
    '$ rsm logs TASK',
    '$ rsm logs -f latest',
    '$ rsm logs -f latest --host web1 --timestamps',
    '$ rsm logs TASK -b --diff',
  ]
  static override args = { task: needed(taskDescription) }
  static override flags = {
    follow: boolean({ char: 'f', description: 'follow until the task has ended' }),
    after: integer({ min: 0, helpValue: 'ID', description: 'only entries after this one' }),
    host: string({ char: 'w', helpValue: 'HOST', description: 'only output of this host' }),
    stream: string({ options: ['stdout', 'stderr'], description: 'only this stream' }),
    tail: integer({
      min: 0,
      max: mostTailLines,
      helpValue: 'N',
      description: 'only the last N lines of all chosen hosts together',
      exclusive: ['after'],
    }),
    timestamps: boolean({ description: 'show the time of each line' }),
    ...outputFlags,
  }

  async run() {
    const { args, flags } = await this.parse(Logs)
    if (flags.json && flags.follow)
      throw new RsmError('usage', '--json prints the current log and cannot follow it', {
        hint: 'leave out -f',
      })
    const show = readShowOptions(flags, flags.json, 'live')
    const client = await this.client()
    const task = await client.tasks.get(await findTaskId(client, args.task))
    const query: LogQuery = given({ after: flags.after, stream: flags.stream as LogQuery['stream'] })
    if (flags.host !== undefined) query.hostId = hostIdOf(task, flags.host)
    const select = (task: Task) =>
      query.hostId === undefined
        ? task
        : { ...task, results: task.results.filter(({ hostId }) => hostId === query.hostId) }
    const outputs = new TaskDisplay({
      show,
      quiet: flags.quiet,
      json: flags.json,
      progress: flags.follow,
      timestamps: flags.timestamps ? { utc: flags.utc } : undefined,
    })
    const sayEmpty = () => {
      const isPart = [flags.host, flags.stream, flags.after, flags.tail].some((each) => each !== undefined)
      const what = isPart ? 'no matching output' : 'no output'
      this.notice(`${what} of task ${task.taskId} (${scriptText(task)}): rsm tasks show ${task.taskId}`)
    }
    try {
      const alone = query.hostId !== undefined || task.hostCount === 1
      await outputs.begin({ hostCount: task.hostCount, alone })
      const entries: LogEntry[] = []
      let next = flags.after ?? 0
      let isEmpty = true
      const showAll = async (some: readonly LogEntry[]) => {
        if (some.length > 0) isEmpty = false
        for (const entry of some) {
          if (flags.json) entries.push(entry)
          await outputs.event({ type: 'output', entry })
        }
      }
      if (flags.tail !== undefined) {
        const read = (query: LogQuery) => client.tasks.logs(task.taskId, query)
        const tail = await readTail(read, query, flags.tail)
        next = tail.next
        query.after = next
        await showAll(tail.entries)
      }
      if (flags.follow) {
        const { taskId } = task
        const { isHalted, exit } = await followTask({
          client,
          outputs,
          query,
          select,
          signals: 'leave',
          start: async () => ({ taskId }),
          resume: (_, last) => `rsm logs -f ${taskId}${resumption(flags.host, last)}`,
        })
        if (isHalted) process.exitCode = exit
        else {
          process.exitCode = outputs.failure === undefined ? 0 : exitCode(outputs.failure)
          if (isEmpty && !outputs.hasOutput) sayEmpty()
        }
        return undefined
      }
      if (flags.tail === undefined)
        for await (const page of pagesOf(client, task, query)) {
          await showAll(page)
          next = page.at(-1)?.id ?? next
        }
      await outputs.end(select(task))
      if (isEmpty && !flags.json) sayEmpty()
      const { failure } = outputs
      if (failure !== undefined) process.exitCode = exitCode(failure)
      if (!flags.json) return undefined
      if (failure !== undefined) reportFailure(failureOf(failure), true)
      return { taskId: task.taskId, entries, next }
    } finally {
      outputs.close()
    }
  }
}
