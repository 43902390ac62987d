import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Target } from '../../core/protocol/http/targets.ts'
import type { ExecutionOptions, Started, Task, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { matchesNone } from '../../core/text/nearest.ts'
import type { BaseCommand } from '../command/base-command.ts'
import type { GateFlags } from '../flags/gates.ts'
import { readShowOptions } from '../flags/output.ts'
import { type RunFlags, readRunOptions } from '../flags/run.ts'
import { readTarget, type TargetFlags } from '../flags/targets.ts'
import { isSomeoneThere } from '../input/prompt.ts'
import type { StdinReader } from '../input/stdin.ts'
import { parseTimer } from '../input/values.ts'
import { isEmptyTarget, selectHosts } from '../names/names.ts'
import type { FormatName } from '../output/formats.ts'
import { sanitize, sanitizeLine } from '../text/sanitize.ts'
import type { FoundGates, MeantGates } from './gates.ts'
import type { PlanView } from './plan-view.ts'
import { planned, type Runnable } from './runnable.ts'
import { refuseDetached, type StartOptions, startTask } from './start.ts'

interface Order extends StartOptions {
  /** Undefined if the script has no gates. */
  readonly gates: MeantGates | undefined
  readonly target: Target
  readonly options: ExecutionOptions
  /** Uploads the scripts' stdin. */
  readonly bring?: (() => Promise<Pick<ExecutionOptions, 'stdin'>>) | undefined
  readonly plan: boolean
  readonly yes: boolean
}

/** Validates all flags before the first request. */
export async function readOrder(
  flags: RunFlags & TargetFlags & Partial<GateFlags> & { readonly json: boolean },
  stdin: (what: string) => Promise<string>,
  notice: (text: string) => void = () => {},
  standard: FormatName | null = 'live',
): Promise<Order> {
  const { detach, plan, yes, deadline } = flags
  const show = readShowOptions(flags, flags.json, standard ?? undefined)
  refuseDetached(detach, show)
  return {
    show,
    gates: await gatesOf(flags, notice),
    detach,
    plan,
    yes,
    'idempotency-key': flags['idempotency-key'],
    target: await readTarget(flags, () => stdin('the names of -w -')),
    options: await readRunOptions(flags),
    deadline: deadline === undefined ? undefined : parseTimer('--deadline', deadline),
  }
}

/** Loads the module only if the script has gates, because most commands have none. */
async function gatesOf(
  flags: Partial<GateFlags>,
  notice: (text: string) => void,
): Promise<MeantGates | undefined> {
  const { verify, rollback } = flags
  const isAsked = [verify, rollback, flags['verify-retries'], flags['verify-interval']].some(
    (each) => each !== undefined,
  )
  return isAsked ? (await import('./gates.ts')).readGates(flags as GateFlags, notice) : undefined
}

/** With `plan`, only shows what would run. */
export async function runOrder(
  command: BaseCommand,
  client: Client,
  order: Order,
  runnable: Runnable,
): Promise<Task | Started | PlanView> {
  const gates = order.gates && (await (await import('./gates.ts')).findGates(client, order.gates))
  const options = { ...(await complete(runnable, gates, order)), ...gates?.options }
  if (order.plan) return showPlan(command, client, { ...order, options }, runnable, gates)
  const explained = (error: unknown) => explain(client, error)
  const target = await agreedTarget(command, client, order, runnable).catch(explained)
  const { bring } = order
  let hostCount = 0
  // Fail before uploading.
  if ('prepare' in runnable || bring !== undefined)
    hostCount = (await client.hosts.select({ target }, { size: 1 }).catch(explained)).totalElements
  const body = {
    ...(await bodyOf(runnable, hostCount)),
    target,
    ...options,
    ...(await bring?.()),
    async: true,
  }
  const received = 'prepare' in runnable ? runnable.received : undefined
  return startTask(command, client, { ...order, received }, (key, signal) =>
    client.tasks.create(body, key, signal).catch(explained),
  )
}

async function bodyOf(
  runnable: Runnable,
  hostCount: number,
): Promise<Pick<TaskCreate, 'scriptId' | 'script' | 'upgrade' | 'copy' | 'fetch'>> {
  if ('prepare' in runnable) return runnable.prepare(hostCount)
  if ('scriptId' in runnable) return { scriptId: runnable.scriptId }
  return 'upgrade' in runnable ? { upgrade: runnable.upgrade } : { script: runnable.script }
}

/** `Run 'reboot'`, `Run script deploy`, `Upgrade to 0.2.0` */
async function intentOf(runnable: Runnable): Promise<string> {
  if ('upgrade' in runnable || 'prepare' in runnable)
    return sanitizeLine(runnable.text.charAt(0).toUpperCase() + runnable.text.slice(1))
  const { quotedBeginning } = await import('./consent.ts')
  const name = 'scriptId' in runnable ? runnable.name : runnable.script.name
  return `Run ${name === undefined ? quotedBeginning(runnable.text) : `script ${sanitizeLine(name)}`}`
}

/** Does the work, and warns if piped data is not used. */
export async function besideStdin<T>(
  command: BaseCommand,
  stdin: StdinReader,
  hint: string,
  work: () => Promise<T>,
): Promise<T> {
  if (stdin.isTaken || process.stdin.isTTY) return work()
  const { hasUnreadStdin } = await import('../input/stdin.ts')
  const checked = hasUnreadStdin().then((isUnread) => {
    if (isUnread) command.notice(`stdin is not passed on${hint}`)
  })
  try {
    return await work()
  } finally {
    await checked
  }
}

/** Asks for confirmation before starting on many or all hosts, if interactive (contract §9). */
async function agreedTarget(
  command: BaseCommand,
  client: Client,
  { target, yes }: Order,
  runnable: Runnable,
): Promise<Target> {
  if (yes || !isSomeoneThere()) return target
  const { confirmTarget } = await import('./consent.ts')
  return confirmTarget(client, target, { action: await intentOf(runnable), server: command.serverName() })
}

/** Adds the params that the script declares: filled in, or prompted for when interactive. */
async function complete(
  runnable: Runnable,
  gates: FoundGates | undefined,
  { options, plan }: Order,
): Promise<ExecutionOptions> {
  const { declaredByAll } = gates ? await import('./gates.ts') : {}
  const declared = (gates && declaredByAll?.(runnable.params, gates, options)) ?? runnable.params
  if (declared.length === 0) return options
  const { completeParams } = await import('../input/script-params.ts')
  const script = planned(runnable).name ?? 'the script'
  return completeParams(declared, options, { script, attended: isSomeoneThere(), plan })
}

/** Explains an empty target or unknown hosts: there may be no hosts yet. */
async function explain(client: Client, error: unknown): Promise<never> {
  if (!(error instanceof RsmError) || error.code !== 'not_found') throw error
  const { message, fields } = error
  // A failure of this request must not hide the first error.
  const page = await client.hosts.list({ size: 1 }).catch(() => undefined)
  if (page?.totalElements === 0)
    throw isEmptyTarget(error)
      ? new RsmError('not_found', 'there are no hosts yet', { fields, hint: 'rsm hosts join' })
      : new RsmError('not_found', message, { fields, hint: 'there are no hosts yet: rsm hosts join' })
  if (!isEmptyTarget(error)) throw error
  const why = message.slice(`${matchesNone}: `.length) || `the target ${matchesNone}`
  throw new RsmError('not_found', `nothing to run on: ${why}`, { fields, hint: 'rsm hosts list' })
}

async function showPlan(
  command: BaseCommand,
  client: Client,
  { target, options, deadline }: Order,
  runnable: Runnable,
  gates: FoundGates | undefined,
): Promise<PlanView> {
  const found = await selectHosts(client, target).catch((error: unknown) => explain(client, error))
  const { batchLines, orderLines, planView } = await import('./plan-view.ts')
  const { canBeReached } = await import('../../core/hosts/host-status.ts')
  const { foldStanding } = await import('../hosts/standing.ts')
  const plan = planView(found, options, planned(runnable), deadline, {
    verify: gates?.verify && planned(gates.verify),
    rollback: gates?.rollback && planned(gates.rollback),
  })
  const away = foldStanding(found.filter((host) => !canBeReached(host)))
  // Verbatim for programs; sanitized for terminals.
  const clean = (text: string) => (process.stdout.isTTY ? sanitize(text) : text)
  const lines = [
    ...batchLines(plan.batches),
    ...away.map(({ names, state }) => `${names} is ${state}`),
    ...orderLines(plan),
    `\n${clean(plan.script)}`.trimEnd(),
    ...[plan.verify, plan.rollback].flatMap((gate, at) =>
      gate === null ? [] : [`\n${at === 0 ? 'verify' : 'rollback'}:\n${clean(gate.script)}`.trimEnd()],
    ),
  ]
  command.print(lines.join('\n'))
  command.notice('plan only: nothing was run')
  return plan
}
