import { randomUUID } from 'node:crypto'
import type { Client } from '../../client/client.ts'
import { resolveHosts, resolveTarget, type TargetOptions } from '../../client/targets.ts'
import { RsmError } from '../../core/errors.ts'
import type { DeclaredParam } from '../../core/front-matter.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { ExecutionOptions, Started, Task, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { readShowOptions } from '../flags/output.ts'
import { type RunFlags, readRunOptions } from '../flags/run.ts'
import { readTargets, type TargetFlags } from '../flags/targets.ts'
import { confirm } from '../input/prompt.ts'
import { parseDuration } from '../input/values.ts'
import { sanitize } from '../text/sanitize.ts'
import { isWatched } from '../text/screen.ts'
import { shellWord } from '../text/shell-word.ts'
import { TaskCommand } from './task-command.ts'

/** What is to run: a stored script, or a text of one's own; `params` are those that it declares. */
export type Runnable = { readonly text: string; readonly params: readonly DeclaredParam[] } & (
  | { readonly scriptId: number; readonly name: string }
  | { readonly script: NonNullable<TaskCreate['script']> }
)

/** Errors: `usage` where what it says of itself can't be read. */
export async function storedRunnable({ id, name, content }: Script): Promise<Runnable> {
  const { readFrontMatter } = await import('../input/front-matter.ts')
  const { params } = readFrontMatter(content, name)
  return { scriptId: id, name, text: content, params }
}

/** What a plan shows (contract §9); nothing of it runs. */
interface PlanView {
  readonly hosts: { id: number; hostname: string; status: Host['status'] }[]
  readonly batches: string[][]
  readonly script: string
  readonly params: Readonly<Record<string, string>>
  /** Their names; values are never shown. */
  readonly secretParams: readonly string[]
}

/** Where and how it runs, as the words typed say it. */
interface Order {
  readonly targets: TargetOptions
  readonly options: ExecutionOptions
  /** Seconds. */
  readonly deadline: number | undefined
}

/** A command that runs something on hosts: `exec` and `scripts run` differ in what, not in how. */
export abstract class RunCommand extends TaskCommand {
  /** Reads all that was typed, so that a mistake is told before anything is asked of a server. */
  protected async readOrder(
    flags: RunFlags & TargetFlags,
    stdin: (what: string) => Promise<string>,
  ): Promise<Order> {
    return {
      targets: await readTargets(flags, () => stdin('the names of -w -')),
      options: await readRunOptions(flags),
      deadline: flags.deadline === undefined ? undefined : parseDuration(flags.deadline),
    }
  }

  protected async execute(
    client: Client,
    flags: RunFlags,
    { targets, options: said, deadline }: Order,
    runnable: Runnable,
  ): Promise<Task | Started | PlanView> {
    const options = await this.#complete(runnable, said, flags.plan)
    if (flags.plan) return this.#plan(client, targets, options, runnable)
    const target = await resolveTarget(client, targets)
    if (targets.all && !flags.yes && process.stdin.isTTY) {
      const { totalElements } = await client.hosts.list({ size: 1 })
      if (!(await confirm(`Run it on all ${totalElements} hosts?`, 'say --yes')))
        throw new RsmError('interrupted', 'nothing was started')
    }
    const what = 'scriptId' in runnable ? { scriptId: runnable.scriptId } : { script: runnable.script }
    const key = flags['idempotency-key'] ?? randomUUID()
    const start = (signal?: AbortSignal) =>
      client.tasks
        .create({ ...what, target, ...options, async: true }, key, signal)
        .catch((error: unknown) => {
          return this.#explain(client, error)
        })
    if (flags.detach) {
      const started = await start()
      this.print(started.taskId)
      return started
    }
    return this.follow(client, start, readShowOptions(flags), deadline)
  }

  /** With the params that the script declares: filled in, or asked where somebody is there. */
  async #complete(runnable: Runnable, options: ExecutionOptions, plan: boolean): Promise<ExecutionOptions> {
    if (runnable.params.length === 0) return options
    const { completeParams } = await import('../input/script-params.ts')
    const script = ('script' in runnable ? runnable.script.name : runnable.name) ?? 'the script'
    return completeParams(runnable.params, options, {
      script,
      attended: process.stdin.isTTY && isWatched(),
      plan,
    })
  }

  /** An empty fleet is the likeliest reason for an empty target: then the next step is to join a host. */
  async #explain(client: Client, error: unknown): Promise<never> {
    if (error instanceof RsmError && (error.code === 'invalid' || error.code === 'not_found')) {
      const { totalElements } = await client.hosts.list({ size: 1 })
      if (totalElements === 0)
        throw new RsmError(error.code, error.message, {
          fields: error.fields,
          hint: 'there are no hosts yet: rsm hosts join',
        })
    }
    throw error
  }

  async #plan(
    client: Client,
    targets: TargetOptions,
    options: ExecutionOptions,
    runnable: Runnable,
  ): Promise<PlanView> {
    const { planBatches } = await import('../../core/plan.ts')
    const found = await resolveHosts(client, targets)
    if (found.length === 0) throw new RsmError('invalid', 'the target has no hosts')
    const sizes = planBatches(found.length, {
      strategy: options.strategy ?? 'PARALLEL',
      batchSize: options.batchSize ?? null,
      concurrency: options.concurrency ?? null,
      maxFailures: options.maxFailures ?? null,
      pauseSeconds: options.pauseSeconds ?? 0,
    })
    const names = found.map((host) => host.hostname)
    const batches = sizes.map((size) => names.splice(0, size))
    const { foldNodeset } = await import('../../core/selector/nodeset.ts')
    batches.forEach((batch, index) => {
      const title = batches.length === 1 ? 'hosts' : `batch ${index + 1}`
      this.print(`${title} (${batch.length}): ${foldNodeset(batch)}`)
    })
    for (const host of found)
      if (host.status === 'OFFLINE')
        this.print(`${host.hostname} is OFFLINE: ${host.statusReason ?? 'not known why'}`)
    const params = options.params ?? {}
    const secretParams = Object.keys(options.secretParams ?? {})
    for (const [name, value] of Object.entries(params)) this.print(`${name}=${shellWord(sanitize(value))}`)
    for (const name of secretParams) this.print(`${name}=(secret)`)
    this.print(runnable.text.trimEnd())
    this.notice('a plan: nothing was run')
    const hosts = found.map(({ id, hostname, status }) => ({ id, hostname, status }))
    return { hosts, batches, script: runnable.text, params, secretParams }
  }
}
