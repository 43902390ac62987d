import type { Client } from '../../client/client.ts'
import { invalid, RsmError } from '../../core/errors.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { ExecutionOptions, Started, Target, Task, TaskCreate } from '../../core/protocol/http/tasks.ts'
import type { DeclaredParam } from '../../core/script/front-matter.ts'
import type { ScriptType } from '../../core/script/script-form.ts'
import { upgradeTimeout } from '../../core/task/plan.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { readShowOptions } from '../flags/output.ts'
import { type RunFlags, readRunOptions } from '../flags/run.ts'
import { readTargets, type TargetFlags } from '../flags/targets.ts'
import { isSomeoneThere } from '../input/prompt.ts'
import type { StdinReader } from '../input/stdin.ts'
import { parseTimer } from '../input/values.ts'
import { resolveHosts, resolveTarget, type TargetOptions } from '../names/targets.ts'
import { sanitize, sanitizeLine } from '../text/sanitize.ts'
import type { PlannedScript, PlanView } from './plan-view.ts'
import { refuseDetached, type StartOptions, startTask } from './start.ts'

/** What is to run: a stored script, or a text of one's own; `params` are those that it declares. */
export type Runnable = { readonly text: string; readonly params: readonly DeclaredParam[] } & (
  | {
      readonly scriptId: number
      readonly name: string
      readonly type: ScriptType
      readonly timeout: number | null
    }
  | { readonly script: NonNullable<TaskCreate['script']> }
  | { readonly upgrade: NonNullable<TaskCreate['upgrade']> }
)

/** Errors: `usage` where what it says of itself can't be read. */
export async function storedRunnable({ id, name, content, type, timeout }: Script): Promise<Runnable> {
  const { readFrontMatter } = await import('../input/front-matter.ts')
  const { params } = readFrontMatter(content, name)
  return { scriptId: id, name, text: content, params, type, timeout }
}

function planned(runnable: Runnable): PlannedScript {
  if ('scriptId' in runnable) return runnable
  if ('upgrade' in runnable)
    return { name: runnable.text, type: 'UPGRADE', timeout: upgradeTimeout, text: '' }
  const { type = 'BASH', name = null, timeout = null } = runnable.script
  return { name, type, timeout, text: runnable.text }
}

interface Order extends StartOptions {
  readonly targets: TargetOptions
  readonly options: ExecutionOptions
  readonly plan: boolean
  readonly yes: boolean
}

/** Reads all that was typed, so that a mistake is told before anything is asked of a server. */
export async function readOrder(
  flags: RunFlags & TargetFlags & { readonly json: boolean },
  stdin: (what: string) => Promise<string>,
): Promise<Order> {
  const { detach, plan, yes, deadline } = flags
  const show = readShowOptions(flags, flags.json, 'live')
  refuseDetached(detach, show)
  return {
    show,
    detach,
    plan,
    yes,
    'idempotency-key': flags['idempotency-key'],
    targets: await readTargets(flags, () => stdin('the names of -w -')),
    options: await readRunOptions(flags),
    deadline: deadline === undefined ? undefined : parseTimer('--deadline', deadline),
  }
}

/** Runs it as ordered: completes its params, finds the hosts, asks, starts the task and shows it. With `plan` only says what would run. */
export async function runOrder(
  command: BaseCommand,
  client: Client,
  order: Order,
  runnable: Runnable,
): Promise<Task | Started | PlanView> {
  const { targets, plan } = order
  const options = await complete(runnable, order.options, plan)
  if (plan) return showPlan(command, client, { ...order, options }, runnable)
  const explained = (error: unknown) => explain(client, error, targets)
  const target = await agreedTarget(command, client, order, runnable).catch(explained)
  const body = { ...bodyOf(runnable), target, ...options, async: true }
  return startTask(command, client, order, (key, signal) =>
    client.tasks.create(body, key, signal).catch(explained),
  )
}

function bodyOf(runnable: Runnable): Pick<TaskCreate, 'scriptId' | 'script' | 'upgrade'> {
  if ('scriptId' in runnable) return { scriptId: runnable.scriptId }
  return 'upgrade' in runnable ? { upgrade: runnable.upgrade } : { script: runnable.script }
}

/** `Run 'reboot'`, `Run script deploy`, `Upgrade to 0.2.0` */
async function intentOf(runnable: Runnable): Promise<string> {
  if ('upgrade' in runnable) return `U${runnable.text.slice(1)}`
  const { quotedBeginning } = await import('./consent.ts')
  const name = 'scriptId' in runnable ? runnable.name : runnable.script.name
  return `Run ${name === undefined ? quotedBeginning(runnable.text) : `script ${sanitizeLine(name)}`}`
}

/** Does the work, and meanwhile says if data that was piped in is not used. */
export async function besideStdin<T>(
  command: BaseCommand,
  stdin: StdinReader,
  hint: string,
  work: () => Promise<T>,
): Promise<T> {
  if (stdin.isTaken || process.stdin.isTTY) return work()
  const { hasUnreadStdin } = await import('../input/unread-stdin.ts')
  const told = hasUnreadStdin().then((isUnread) => {
    if (isUnread) command.notice(`stdin is not passed on${hint}`)
  })
  try {
    return await work()
  } finally {
    await told
  }
}

/** A person is asked before much is started, or all; without one nothing is asked (contract §9). */
async function agreedTarget(
  command: BaseCommand,
  client: Client,
  { targets, yes }: Order,
  runnable: Runnable,
): Promise<Target> {
  if (yes || !isSomeoneThere()) return resolveTarget(client, targets)
  const { confirmTarget } = await import('./consent.ts')
  return confirmTarget(client, targets, { what: await intentOf(runnable), server: command.serverName() })
}

/** With the params that the script declares: filled in, or asked where somebody is there. */
async function complete(
  runnable: Runnable,
  options: ExecutionOptions,
  plan: boolean,
): Promise<ExecutionOptions> {
  if (runnable.params.length === 0) return options
  const { completeParams } = await import('../input/script-params.ts')
  const script = planned(runnable).name ?? 'the script'
  return completeParams(runnable.params, options, { script, attended: isSomeoneThere(), plan })
}

/** Why the target is empty: there are no hosts at all, and one has to be joined, or a part of what was typed names none. */
async function explain(client: Client, error: unknown, targets: TargetOptions): Promise<never> {
  if (!(error instanceof RsmError) || (error.code !== 'invalid' && error.code !== 'not_found')) throw error
  const { code, message, fields } = error
  // A refusal that names no field is about something else.
  const isEmpty =
    code === 'invalid' && fields.length > 0 && fields.every(({ field }) => /^target\b/.test(field))
  // A second fault, of this question, would hide the first.
  const page = await client.hosts.list({ size: 1 }).catch(() => undefined)
  if (page?.totalElements === 0)
    throw new RsmError(isEmpty ? 'not_found' : code, message, {
      fields,
      hint: 'there are no hosts yet: rsm hosts join',
    })
  if (!isEmpty) throw error
  const { emptyTarget } = await import('../names/empty-target.ts')
  throw (await emptyTarget(client, targets).catch(() => undefined)) ?? error
}

async function showPlan(
  command: BaseCommand,
  client: Client,
  { targets, options, deadline }: Order,
  runnable: Runnable,
): Promise<PlanView> {
  const found = await resolveHosts(client, targets)
  if (found.length === 0)
    await explain(client, invalid([{ field: 'target', message: 'names no host' }]), targets)
  const { batchLines, orderLines, planView } = await import('./plan-view.ts')
  const { canBeReached } = await import('../../core/host-status.ts')
  const { foldStanding } = await import('../hosts/standing.ts')
  const plan = planView(found, options, planned(runnable), deadline)
  const away = foldStanding(found.filter((host) => !canBeReached(host)))
  // Exact for programs; a terminal is not handed what would move its cursor.
  const script = process.stdout.isTTY ? sanitize(plan.script) : plan.script
  const lines = [
    ...batchLines(plan.batches),
    ...away.map(({ names, state }) => `${names} is ${state}`),
    ...orderLines(plan),
    `\n${script}`.trimEnd(),
  ]
  command.print(lines.join('\n'))
  command.notice('a plan: nothing was run')
  return plan
}
