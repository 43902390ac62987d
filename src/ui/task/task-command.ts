import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { BaseCommand } from '../command/base-command.ts'
import type { ShowOptions } from '../flags/output.ts'
import type { OutputFormat } from '../output/format.ts'
import { GroupedOutput } from '../output/grouped.ts'
import { LiveOutput } from '../output/live.ts'
import { sinkOf } from '../output/sink.ts'
import { runAndFollow } from './follow.ts'
import { failureLines, summaryLine, tellsHostState } from './outcome.ts'

/** Hosts that get a line of their own on why they are not reachable. */
const explainedHosts = 3

/** A command that shows a task to its end and exits as the task ended (contract §9). */
export abstract class TaskCommand extends BaseCommand {
  /** What of the task is shown while it runs; with `--json` only its end is. */
  protected formats(options: ShowOptions, hostCount: number): OutputFormat[] {
    if (this.globals.json) return []
    const stdout = sinkOf(process.stdout)
    const live = new LiveOutput({
      ...options,
      alone: hostCount === 1,
      stdout,
      stderr: sinkOf(process.stderr),
    })
    return [options.grouped ? new GroupedOutput({ stdout, raw: options.raw, live }) : live]
  }

  /** Follows what `start` starts; sets the exit code; answers the task. */
  protected async follow(
    client: Client,
    start: (signal: AbortSignal) => Promise<{ taskId: string; hostCount: number }>,
    show: ShowOptions,
    deadline?: number,
  ): Promise<Task> {
    const { task, exit } = await runAndFollow({
      client,
      start,
      formats: (hostCount) => this.formats(show, hostCount),
      deadline,
      terminal: process.stdin.isTTY && process.stderr.isTTY,
      notice: (text) => this.notice(text),
    })
    process.exitCode = exit
    if (!this.globals.json) await this.#summarise(client, task)
    return task
  }

  async #summarise(client: Client, task: Task): Promise<void> {
    for (const line of failureLines(task)) process.stderr.write(`rsm: ${line}\n`)
    const unreachable = task.results.filter((result) => result.status === 'UNREACHABLE')
    for (const result of unreachable.slice(0, explainedHosts)) {
      const { hostId, hostname } = result
      if (tellsHostState(result)) {
        process.stderr.write(`     rsm hosts doctor ${hostname}\n`)
        continue
      }
      const host = await client.hosts.get(hostId).catch((error: unknown) => {
        if (error instanceof RsmError) return undefined
        throw error
      })
      if (host !== undefined && host.status !== 'ONLINE')
        process.stderr.write(
          `rsm: ${hostname} is ${host.status}: ${host.statusReason ?? 'not known why'}\n     rsm hosts doctor ${hostname}\n`,
        )
    }
    this.notice(summaryLine(task))
  }
}
