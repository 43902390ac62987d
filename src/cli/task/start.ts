import type { Client } from '../../client/client.ts'
import { newIdempotencyKey } from '../../client/services/requests.ts'
import { exitCode, RsmError } from '../../core/errors.ts'
import type { Started, Task } from '../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { failureOf, reportFailure } from '../command/failure.ts'
import type { ShowOptions } from '../flags/output.ts'
import { standingOf } from '../hosts/standing.ts'
import { isSomeoneThere } from '../input/prompt.ts'
import {
  changedLines,
  cutLines,
  failureLines,
  foldFailures,
  summaryLine,
  tellsHostState,
  warningLines,
} from '../output/outcome.ts'
import { sanitizeLine, shellWord } from '../text/sanitize.ts'
import { showDuration } from '../text/time.ts'
import { followTask } from './follow.ts'
import { TaskDisplay } from './task-display.ts'

/** Hosts looked up on the server because their results do not say why they are unreachable. */
const mostAsked = 3

interface Explanation {
  /** `web1 is OFFLINE: never heard`, for those whose result does not say so. */
  readonly lines: readonly string[]
  /** Command to learn more; undefined if all hosts are back. */
  readonly next: string | undefined
}

/** Why hosts were unreachable, and one command that examines all of them. */
async function explainUnreachable(
  client: Client,
  results: readonly Pick<TaskResult, 'hostId' | 'hostname' | 'error'>[],
): Promise<Explanation> {
  const away = results.filter(tellsHostState).map(({ hostname }) => hostname)
  const lines: string[] = []
  const silent = results.filter((result) => !tellsHostState(result))
  for (const { hostId, hostname } of silent.slice(0, mostAsked)) {
    const host = await client.hosts.get(hostId).catch((error: unknown) => {
      if (error instanceof RsmError) return undefined
      throw error
    })
    if (host === undefined || host.statusReason === null) continue
    lines.push(`${hostname} is ${standingOf(host)}`)
    away.push(hostname)
  }
  const next = away.length === 0 ? undefined : `rsm hosts doctor ${shellWord(foldNodeset(away))}`
  return { lines, next }
}

export interface StartOptions {
  readonly show: ShowOptions
  /** Seconds. */
  readonly deadline: number | undefined
  readonly detach: boolean
  readonly 'idempotency-key'?: string | undefined
  /** Called after the end of the task: downloads its results. */
  readonly received?: ((task: Task) => Promise<void>) | undefined
}

/** Errors: `usage` for output that would be lost. */
export function refuseDetached(detach: boolean, { files, outdir }: ShowOptions): void {
  const path = outdir ?? files[0]?.path
  if (detach && path !== undefined)
    throw new RsmError('usage', `--detach does not wait, so nothing would be written to ${path}`, {
      hint: 'later: rsm tasks wait TASK -o FORMAT=FILE',
    })
}

/** Reports a reused key, so that its old result is not mistaken for a new one. */
function sayReplayed(command: BaseCommand, started: Started | Task): void {
  const after = 'replayedAfterSeconds' in started ? started.replayedAfterSeconds : null
  if (after === null) return
  const ago = `${after < 60 ? `${after} s` : showDuration(after * 1000)} ago`
  command.notice(
    `this key started task ${started.taskId} ${ago}; this is its result, and nothing new was started`,
  )
}

/** Starts a task and shows it; with `detach`, prints its id. Sets the exit code (contract §9). */
export async function startTask(
  command: BaseCommand,
  client: Client,
  { show, deadline, detach, 'idempotency-key': givenKey, received }: StartOptions,
  create: (key: string, signal?: AbortSignal) => Promise<Started | Task>,
  announce: (started: Started | Task) => void = () => {},
): Promise<Started | Task> {
  const key = givenKey ?? newIdempotencyKey()
  const start = async (signal?: AbortSignal) => {
    const started = await create(key, signal)
    // A generated key may be repeated by this command's own retries.
    if (givenKey !== undefined) sayReplayed(command, started)
    announce(started)
    return started
  }
  if (detach) {
    const started = await start()
    command.print(started.taskId)
    command.hint(`next: rsm logs -f ${started.taskId}`)
    return started
  }
  const outputs = taskOutputs(command, show)
  const { task, exit, reason, isHalted } = await followTask({
    client,
    start,
    outputs,
    deadline,
    signals: process.stderr.isTTY && isSomeoneThere() ? 'ask' : 'cancel',
    resume: (taskId) => `rsm logs -f ${taskId}`,
  })
  if (reason !== undefined && command.globals.json) reportFailure(failureOf(reason), true)
  else if (reason !== undefined) outputs.warn(reason.message)
  try {
    if (!isHalted) await received?.(task)
  } finally {
    await conclude(command, client, task, exit, outputs)
  }
  return task
}

export function taskOutputs({ globals: { quiet, json } }: BaseCommand, show: ShowOptions): TaskDisplay {
  return new TaskDisplay({ show, quiet, json, progress: true, summarised: !json })
}

/**
 * Sets the exit code: a local file that could not be written is a failure. Lists failures and next commands.
 */
export async function conclude(
  command: BaseCommand,
  client: Client,
  task: Task,
  exit: number,
  outputs: TaskDisplay,
): Promise<void> {
  const { failure } = outputs
  process.exitCode = exit === 0 && failure !== undefined ? exitCode(failure) : exit
  if (command.globals.json) {
    if (failure !== undefined) reportFailure({ ...failureOf(failure), exit: Number(process.exitCode) }, true)
    return
  }
  await summarise(client, task, outputs)
  if (task.status === 'RUNNING') return
  const failed = task.results.find(({ status }) => status === 'FAILED' || status === 'TIMEOUT')
  const isWorthIt = failed !== undefined || task.counts.UNREACHABLE + task.counts.LOST > 0
  if (isWorthIt) command.hint(`retry the failed: rsm tasks retry ${task.taskId}`)
  if (failed !== undefined && task.results.length > 1)
    command.hint(`output of one: rsm logs ${task.taskId} -w ${sanitizeLine(failed.hostname)}`)
}

async function summarise(client: Client, task: Task, outputs: TaskDisplay): Promise<void> {
  const failures = foldFailures(task)
  const lines = failureLines(failures)
  const unreachable = task.results.filter(({ status }) => status === 'UNREACHABLE')
  // The command goes below the hosts that it is for, not below a failed one.
  const last = failures.findLastIndex(({ results }) => results[0]?.status === 'UNREACHABLE')
  for (const line of lines.slice(0, last + 1)) outputs.warn(line)
  if (unreachable.length > 0) {
    const explained = await explainUnreachable(client, unreachable)
    for (const line of explained.lines) outputs.warn(line)
    if (explained.next !== undefined) outputs.next(explained.next)
  }
  for (const line of lines.slice(last + 1)) outputs.warn(line)
  for (const line of [...warningLines(task), ...cutLines(task)]) outputs.notice(line)
  for (const line of changedLines(task)) outputs.notice(line)
  outputs.notice(summaryLine(task))
}
