import type { Client } from '../../client/client.ts'
import { newIdempotencyKey } from '../../client/idempotency-key.ts'
import { invalid, RsmError } from '../../core/errors.ts'
import type { Script, ScriptType } from '../../core/protocol/http/scripts.ts'
import type { ExecutionOptions, Started, Target, Task, TaskCreate } from '../../core/protocol/http/tasks.ts'
import type { DeclaredParam } from '../../core/script/front-matter.ts'
import { readShowOptions, type ShowOptions } from '../flags/output.ts'
import { type RunFlags, readRunOptions } from '../flags/run.ts'
import { readTargets, type TargetFlags } from '../flags/targets.ts'
import { isSomeoneThere } from '../input/prompt.ts'
import type { StdinReader } from '../input/stdin.ts'
import { parseTimer } from '../input/values.ts'
import { resolveHosts, resolveTarget, type TargetOptions } from '../names/targets.ts'
import { sanitize, sanitizeLine } from '../text/sanitize.ts'
import type { PlannedScript, PlanView } from './plan-view.ts'
import { refuseDetached, TaskCommand } from './task-command.ts'

/** What is to run: a stored script, or a text of one's own; `params` are those that it declares. */
export type Runnable = { readonly text: string; readonly params: readonly DeclaredParam[] } & (
  | {
      readonly scriptId: number
      readonly name: string
      readonly type: ScriptType
      readonly timeout: number | null
    }
  | { readonly script: NonNullable<TaskCreate['script']> }
)

/** Errors: `usage` where what it says of itself can't be read. */
export async function storedRunnable({ id, name, content, type, timeout }: Script): Promise<Runnable> {
  const { readFrontMatter } = await import('../input/front-matter.ts')
  const { params } = readFrontMatter(content, name)
  return { scriptId: id, name, text: content, params, type, timeout }
}

function planned(runnable: Runnable): PlannedScript {
  if ('scriptId' in runnable) return runnable
  const { type = 'BASH', name = null, timeout = null } = runnable.script
  return { name, type, timeout, text: runnable.text }
}

/** Where and how it runs, as the words typed say it. */
interface Order {
  readonly targets: TargetOptions
  readonly options: ExecutionOptions
  /** Seconds. */
  readonly deadline: number | undefined
  readonly show: ShowOptions
}

/** A command that runs something on hosts: `exec` and `scripts run` differ in what, not in how. */
export abstract class RunCommand extends TaskCommand {
  /** Reads all that was typed, so that a mistake is told before anything is asked of a server. */
  protected async readOrder(
    flags: RunFlags & TargetFlags & { readonly json: boolean },
    stdin: (what: string) => Promise<string>,
  ): Promise<Order> {
    const show = readShowOptions(flags, flags.json, 'live')
    refuseDetached(flags.detach, show)
    return {
      show,
      targets: await readTargets(flags, () => stdin('the names of -w -')),
      options: await readRunOptions(flags),
      deadline: flags.deadline === undefined ? undefined : parseTimer('--deadline', flags.deadline),
    }
  }

  protected async execute(
    client: Client,
    flags: RunFlags,
    { targets, options: said, deadline, show }: Order,
    runnable: Runnable,
  ): Promise<Task | Started | PlanView> {
    const options = await this.#complete(runnable, said, flags.plan)
    if (flags.plan) return this.#plan(client, { targets, options, deadline, show }, runnable)
    const target = await this.#target(client, targets, runnable, flags.yes).catch((error: unknown) =>
      this.#explain(client, error, targets),
    )
    const what = 'scriptId' in runnable ? { scriptId: runnable.scriptId } : { script: runnable.script }
    const key = flags['idempotency-key'] ?? newIdempotencyKey()
    const start = async (signal?: AbortSignal) => {
      const body = { ...what, target, ...options, async: true }
      const started = await client.tasks.create(body, key, signal).catch((error: unknown) => {
        return this.#explain(client, error, targets)
      })
      this.sayReplayed(started, flags['idempotency-key'])
      return started
    }
    if (flags.detach) {
      const started = await start()
      this.print(started.taskId)
      this.hint(`next: rsm logs -f ${started.taskId}`)
      return started
    }
    return this.follow(client, start, show, deadline)
  }

  /** Does the work; meanwhile says that nothing of what is piped into it goes anywhere. */
  protected async beside<T>(stdin: StdinReader, hint: string, work: () => Promise<T>): Promise<T> {
    if (stdin.isTaken || process.stdin.isTTY) return work()
    const { hasUnreadStdin } = await import('../input/unread-stdin.ts')
    const told = hasUnreadStdin().then((isUnread) => {
      if (isUnread) this.notice(`stdin is not passed on${hint}`)
    })
    try {
      return await work()
    } finally {
      await told
    }
  }

  /** A person is asked before much is started, or all; without one nothing is asked (contract §9). */
  async #target(client: Client, targets: TargetOptions, runnable: Runnable, yes: boolean): Promise<Target> {
    if (yes || !isSomeoneThere()) return resolveTarget(client, targets)
    const { confirmTarget, quotedBeginning } = await import('./consent.ts')
    const name = 'scriptId' in runnable ? runnable.name : runnable.script.name
    const what = name === undefined ? quotedBeginning(runnable.text) : `script ${sanitizeLine(name)}`
    return confirmTarget(client, targets, { what: `Run ${what}`, server: this.serverName() })
  }

  /** With the params that the script declares: filled in, or asked where somebody is there. */
  async #complete(runnable: Runnable, options: ExecutionOptions, plan: boolean): Promise<ExecutionOptions> {
    if (runnable.params.length === 0) return options
    const { completeParams } = await import('../input/script-params.ts')
    const script = ('script' in runnable ? runnable.script.name : runnable.name) ?? 'the script'
    return completeParams(runnable.params, options, {
      script,
      attended: isSomeoneThere(),
      plan,
    })
  }

  /** An empty target: by an empty fleet, where the next step is to join a host, or by a part of what was typed. */
  async #explain(client: Client, error: unknown, targets: TargetOptions): Promise<never> {
    if (error instanceof RsmError && (error.code === 'invalid' || error.code === 'not_found')) {
      // A refusal that names no field at all is of something else.
      const isEmpty =
        error.code === 'invalid' &&
        error.fields.length > 0 &&
        error.fields.every(({ field }) => /^target\b/.test(field))
      // A second fault, of this question, would hide the first.
      const page = await client.hosts.list({ size: 1 }).catch(() => undefined)
      if (page?.totalElements === 0)
        throw new RsmError(isEmpty ? 'not_found' : error.code, error.message, {
          fields: error.fields,
          hint: 'there are no hosts yet: rsm hosts join',
        })
      if (isEmpty) {
        const { emptyTarget } = await import('../names/empty-target.ts')
        throw (await emptyTarget(client, targets).catch(() => undefined)) ?? error
      }
    }
    throw error
  }

  async #plan(client: Client, { targets, options, deadline }: Order, runnable: Runnable): Promise<PlanView> {
    const found = await resolveHosts(client, targets)
    if (found.length === 0)
      await this.#explain(client, invalid([{ field: 'target', message: 'names no host' }]), targets)
    const { batchLines, orderLines, planView } = await import('./plan-view.ts')
    const plan = planView(found, options, planned(runnable), deadline)
    for (const line of batchLines(plan.batches)) this.print(line)
    const { canBeReached } = await import('../../core/host-status.ts')
    const { foldStanding } = await import('../hosts/standing.ts')
    for (const { names, state } of foldStanding(found.filter((host) => !canBeReached(host))))
      this.print(`${names} is ${state}`)
    for (const line of orderLines(plan)) this.print(line)
    // Exact for programs; a terminal is not handed what would move its cursor.
    this.print(`\n${process.stdout.isTTY ? sanitize(plan.script) : plan.script}`.trimEnd())
    this.notice('a plan: nothing was run')
    return plan
  }
}
