import type { Client } from '../../client/client.ts'
import { exitCode, RsmError } from '../../core/errors.ts'
import type { Started, Task } from '../../core/protocol/http/tasks.ts'
import { BaseCommand } from '../command/base-command.ts'
import { failureOf, reportFailure } from '../command/failure.ts'
import type { ShowOptions } from '../flags/output.ts'
import { isSomeoneThere } from '../input/prompt.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { showDuration } from '../text/time.ts'
import { runAndFollow } from './follow.ts'
import { cutLines, failureLines, foldFailures, summaryLine } from './outcome.ts'
import { Outputs } from './outputs.ts'
import { explainUnreachable } from './unreachable.ts'

/** What would be without effect: somebody relies on it. */
export function refuseDetached(detach: boolean, { files, outdir }: ShowOptions): void {
  const path = outdir ?? files[0]?.path
  if (detach && path !== undefined)
    throw new RsmError('usage', `--detach does not wait, so nothing would come into ${path}`, {
      hint: 'later: rsm tasks wait TASK -o FORMAT=FILE',
    })
}

/** How long the last of the output may take to be written, once nothing is waited for any more, in milliseconds. */
const writeTime = 1_000

/** What is written to a reader that does not read would keep the process for ever. */
function endInTime(exit: number, within: number): void {
  setTimeout(() => process.exit(process.exitCode ?? exit), within + writeTime).unref()
}

/** A command that shows a task to its end and exits as the task ended (contract §9). */
export abstract class TaskCommand extends BaseCommand {
  /** Follows what `start` starts; sets the exit code; answers the task. */
  protected async follow(
    client: Client,
    start: (signal: AbortSignal) => Promise<{ taskId: string; hostCount: number }>,
    show: ShowOptions,
    deadline?: number,
  ): Promise<Task> {
    const outputs = this.outputs(show)
    const { task, exit, reason } = await runAndFollow({
      client,
      start,
      outputs,
      deadline,
      terminal: process.stderr.isTTY && isSomeoneThere(),
      halted: endInTime,
    })
    if (reason !== undefined) this.#tellReason(reason, outputs)
    await this.conclude(client, task, exit, outputs)
    return task
  }

  #tellReason(reason: RsmError, outputs: Outputs): void {
    if (this.globals.json) reportFailure(failureOf(reason), true)
    else outputs.warn(reason.message)
  }

  /** A key that was used before starts nothing: without a word, an old result would be taken for a new one. */
  protected sayReplayed(started: Started | Task, key: string | undefined): void {
    const after = 'replayedAfterSeconds' in started ? started.replayedAfterSeconds : null
    // A key that nobody gave was sent again by this command itself, after a lost answer.
    if (key === undefined || after === null) return
    const ago = `${after < 60 ? `${after} s` : showDuration(after * 1000)} ago`
    this.notice(
      `this key started task ${started.taskId} ${ago}; this is its result, nothing was started anew`,
    )
  }

  protected outputs(show: ShowOptions): Outputs {
    return new Outputs({ show, quiet: this.globals.quiet, json: this.globals.json, progress: true })
  }

  /** Sets the exit code and says who failed and what to type next. A file that could not be written is a failure of ours. */
  protected async conclude(client: Client, task: Task, exit: number, outputs: Outputs): Promise<void> {
    const { failure } = outputs
    process.exitCode = exit === 0 && failure !== undefined ? exitCode(failure) : exit
    if (this.globals.json) {
      if (failure !== undefined)
        reportFailure({ ...failureOf(failure), exit: Number(process.exitCode) }, true)
      return
    }
    await this.#summarise(client, task, outputs)
    if (task.status === 'RUNNING') return
    const failed = task.results.find(({ status }) => status === 'FAILED' || status === 'TIMEOUT')
    const isWorthIt = failed !== undefined || task.counts.UNREACHABLE + task.counts.LOST > 0
    if (isWorthIt) this.hint(`retry the failed: rsm tasks retry ${task.taskId}`)
    if (failed !== undefined && task.results.length > 1)
      this.hint(`output of one: rsm logs ${task.taskId} -w ${sanitizeLine(failed.hostname)}`)
  }

  async #summarise(client: Client, task: Task, outputs: Outputs): Promise<void> {
    const failures = foldFailures(task)
    const lines = failureLines(failures)
    const unreachable = task.results.filter(({ status }) => status === 'UNREACHABLE')
    // The command stands below the hosts that it is for, not below one that failed.
    const last = failures.findLastIndex(({ results }) => results[0]?.status === 'UNREACHABLE')
    for (const line of lines.slice(0, last + 1)) outputs.warn(line)
    if (unreachable.length > 0) {
      const explained = await explainUnreachable(client, unreachable)
      for (const line of explained.lines) outputs.warn(line)
      if (explained.next !== undefined) outputs.next(explained.next)
    }
    for (const line of lines.slice(last + 1)) outputs.warn(line)
    for (const line of cutLines(task)) outputs.notice(line)
    outputs.notice(summaryLine(task))
  }
}
