import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { given, ifGiven } from '../../cli/flags/checks.ts'
import { findCluster, findHost, findSchedule, findScript, refuseUnknownUser } from '../../cli/names/names.ts'
import { countsText, tallyOf } from '../../cli/task/task-state.ts'
import { toneOf, withOwnMark } from '../../cli/text/screen.ts'
import { showDuration, timeColumn } from '../../cli/text/time.ts'
import { allPages } from '../../client/http/pages.ts'
import type { TaskQuery, TaskSummary } from '../../core/protocol/http/tasks.ts'

/** Length of the end of an id, which commands accept in its place. */
const idSuffixLength = 6

/** `3/3` hosts that succeeded; `1/3, 1 failed` while others may still succeed. */
function doneOf({ counts, hostCount, status }: TaskSummary): string {
  const { failed } = tallyOf(counts)
  const done = `${counts.SUCCESS}/${hostCount}`
  return failed === 0 || status === 'FAILED' ? done : `${done}, ${failed} failed`
}

export default class TasksList extends BaseCommand {
  static override summary = 'List tasks, newest first'
  static override examples = ['$ rsm tasks list --limit 20', '$ rsm tasks list --status RUNNING']
  static override flags = {
    status: string({
      options: ['RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED'],
      description: 'only tasks in this state',
    }),
    host: string({ char: 'w', helpValue: 'HOST', description: 'only tasks that ran on this host' }),
    cluster: string({ char: 'g', helpValue: 'NAME', description: 'only tasks of this cluster' }),
    script: string({ helpValue: 'NAME', description: 'only tasks of this stored script' }),
    schedule: string({ helpValue: 'NAME', description: 'only tasks of this schedule' }),
    'created-by': string({
      aliases: ['by'],
      helpValue: 'USER',
      description: 'only tasks that this user started',
    }),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(TasksList)
    const client = await this.client()
    const { status, host, cluster, script, schedule, 'created-by': createdBy } = flags
    const query: TaskQuery = given({
      status: status as TaskQuery['status'],
      hostId: (await ifGiven(host, (name) => findHost(client, name)))?.id,
      clusterId: (await ifGiven(cluster, (name) => findCluster(client, name)))?.id,
      scriptId: (await ifGiven(script, (name) => findScript(client, name)))?.id,
      scheduleId: (await ifGiven(schedule, (name) => findSchedule(client, name)))?.id,
      createdBy,
    })
    const page = await allPages((paging) => client.tasks.list(paging), query, flags.limit)
    if (page.totalElements === 0) await refuseUnknownUser(client, createdBy)
    return showList(this, page, {
      noun: 'tasks',
      filtered: Object.keys(query).length > 0,
      none: 'no tasks: rsm exec -w HOST COMMAND',
      columns: [
        {
          heading: 'TASK',
          value: (task) => task.taskId,
          essential: true,
          shortest: (task) => task.taskId.slice(-idSuffixLength),
        },
        {
          heading: 'STATUS',
          value: (task) => task.status,
          essential: true,
          tone: (task) => toneOf(task.status),
        },
        { heading: 'HOSTS', value: ({ counts }) => countsText(counts), short: doneOf },
        {
          heading: 'SCRIPT',
          value: (task) => task.scriptName ?? withOwnMark(task.firstLine ?? '(ad hoc)'),
        },
        { heading: 'BY', value: (task) => task.createdBy, spare: true },
        timeColumn('CREATED', ({ createdAt }) => createdAt, flags.utc),
        { heading: 'TOOK', value: (task) => showDuration(task.duration) },
      ],
    })
  }
}
