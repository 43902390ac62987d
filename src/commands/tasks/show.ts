import { BaseCommand } from '../../cli/command/base-command.ts'
import { filesOfTask } from '../../cli/files/shown.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findTaskId, taskDescription } from '../../cli/names/names.ts'
import { cutOutput } from '../../cli/output/outcome.ts'
import { sanitize } from '../../cli/text/sanitize.ts'
import { isUtf8, toneOf } from '../../cli/text/screen.ts'
import { showDuration, showTime } from '../../cli/text/time.ts'
import type { Task, TaskScript } from '../../core/protocol/http/tasks.ts'
import { showLimits } from '../../core/tasks/limits.ts'
import { runsScript, type TaskResult } from '../../core/tasks/task.ts'

/** Lines of the script that are shown, enough to recognize it. */
const shownLines = 20

function nameOf({ scriptName, scriptVersion, type }: TaskScript): string {
  const version = scriptVersion === null ? '' : ` version ${scriptVersion}`
  return `${scriptName ?? 'ad hoc'}${version} (${type})`
}

function headOf(content: string): string {
  const lines = sanitize(content).trimEnd().split('\n')
  const more = lines.length - shownLines
  const cut = more > 0 ? [`${isUtf8() ? '…' : '...'} ${more} more line${more === 1 ? '' : 's'}`] : []
  return [...lines.slice(0, shownLines), ...cut].map((line) => `  ${line}`).join('\n')
}

/** Whether a copy changed the host; null if unknown. */
const changedOf = ({ changed }: TaskResult): string | null =>
  changed === null ? null : changed ? 'yes' : 'no'

/** Everything to know beside the exit code, including that output is incomplete. */
function errorOf({ error, rollback, truncated, outputComplete }: TaskResult): string {
  const parts = [
    error,
    rollback?.status === 'SUCCESS' ? 'rolled back' : null,
    truncated ? cutOutput : null,
    outputComplete || truncated ? null : 'its output is incomplete',
  ]
  return parts.filter((each) => each !== null).join('; ')
}

function paramsOf({ params, secretParams }: TaskScript): string | null {
  const pairs = Object.entries(params).map(([name, value]) => `${name}=${value}`)
  pairs.push(...secretParams.map((name) => `${name} (secret)`))
  return pairs.length === 0 ? null : pairs.join(', ')
}

function scheduleOf({ scheduleId, plannedAt }: Task, utc: boolean): { schedule?: string } {
  if (typeof scheduleId !== 'number') return {}
  const slot = typeof plannedAt === 'string' ? `, for ${showTime(plannedAt, utc)}` : ', run by hand'
  return { schedule: `${scheduleId}${slot}` }
}

export default class TasksShow extends BaseCommand {
  static override summary = 'Show a task: what it ran and the result of each host'
  static override examples = ['$ rsm tasks show TASK', '$ rsm tasks show latest']
  static override args = { task: needed(taskDescription) }

  async run() {
    const { args, flags } = await this.parse(TasksShow)
    const client = await this.client()
    const task = await client.tasks.get(await findTaskId(client, args.task))
    if (this.globals.json) return task
    const script = runsScript(task.type) ? await client.tasks.script(task.taskId) : null
    const { gateLine } = await import('../../cli/task/plan-view.ts')
    const { renderFields, renderTable } = await import('../../cli/text/table.ts')
    const fields = renderFields({
      task: task.taskId,
      status: task.status,
      ...(typeof task.server === 'string' ? { server: task.server } : {}),
      ...(script === null ? { type: task.type } : { script: nameOf(script), params: paramsOf(script) }),
      ...(task.retryOf === null ? {} : { 'retry of': task.retryOf }),
      ...scheduleOf(task, flags.utc),
      strategy: task.strategy,
      timeout: task.timeout === 0 ? 'none' : `${task.timeout} s`,
      ...(task.runAs === null ? {} : { 'run as': task.runAs }),
      ...(task.limits === null ? {} : { limits: showLimits(task.limits) }),
      ...filesOfTask(task),
      ...(task.verify ? { verify: gateLine(task.verify) } : {}),
      ...(task.rollback ? { rollback: gateLine(task.rollback) } : {}),
      by: task.createdBy,
      created: showTime(task.createdAt, flags.utc),
      ended: showTime(task.completedAt, flags.utc),
      took: showDuration(task.duration),
    })

    const table = renderTable(task.results, [
      { heading: 'HOST', value: (result) => result.hostname, essential: true },
      {
        heading: 'STATUS',
        value: ({ status, phase }) => (phase === 'VERIFY' || phase === 'ROLLBACK' ? phase : status),
        essential: true,
        tone: ({ status }) => toneOf(status),
      },
      { heading: 'EXIT', value: (result) => result.exitCode, essential: true },
      ...(task.copy ? [{ heading: 'CHANGED', value: changedOf }] : []),
      { heading: 'TOOK', value: (result) => showDuration(result.duration) },
      { heading: 'ERROR', value: errorOf, wrap: true },
    ])
    const head = script === null ? '' : `${headOf(script.content)}\n\n`
    await this.printLong(`${fields}\n\n${head}${table}`)
    if (task.fetch && task.counts.SUCCESS > 0) this.hint(`next: rsm tasks files ${task.taskId} --outdir DIR`)
    return task
  }
}
