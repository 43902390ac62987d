import type { Client } from '../../client/client.ts'
import { newIdempotencyKey } from '../../client/services/requests.ts'
import { watchTask } from '../../client/watch.ts'
import { exitCode, RsmError } from '../../core/errors.ts'
import type { Target } from '../../core/protocol/http/clusters.ts'
import type { LogQuery } from '../../core/protocol/http/logs.ts'
import type { ExecutionOptions, Started, Task } from '../../core/protocol/http/tasks.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { failureOf, Halted, reportFailure } from '../command/failure.ts'
import { readShowOptions, refuseDetached, type ShowOptions } from '../flags/output.ts'
import { type GateFlags, type RunFlags, readRunOptions } from '../flags/run.ts'
import { readTarget, type TargetFlags } from '../flags/targets.ts'
import { isSomeoneThere } from '../input/prompt.ts'
import { parseTimer } from '../input/values.ts'
import { explainNoHosts, selectHosts } from '../names/names.ts'
import type { FormatName } from '../output/formats.ts'
import {
  changedLines,
  cutLines,
  failureLines,
  foldFailures,
  summaryLine,
  warningLines,
} from '../output/outcome.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { showDuration } from '../text/time.ts'
import type { FoundGates, MeantGates } from './gates.ts'
import { type Followed, Halting, type HaltOptions } from './halting.ts'
import type { PlanView } from './plan-view.ts'
import { bodyOf, planned, type Runnable } from './runnable.ts'
import { explainUnreachable, SilentHosts } from './silent-hosts.ts'
import { TaskDisplay } from './task-display.ts'

interface StartOptions {
  readonly show: ShowOptions
  /** Seconds. */
  readonly deadline: number | undefined
  readonly detach: boolean
  readonly 'idempotency-key'?: string | undefined
  /** Called after the end of the task: downloads its results. */
  readonly received?: ((task: Task) => Promise<void>) | undefined
}

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

/** Completes the params, asks for consent, uploads and starts the task; with `plan`, only shows what would run. */
export async function runOrder(
  command: BaseCommand,
  client: Client,
  order: Order,
  runnable: Runnable,
): Promise<Task | Started | PlanView> {
  const gates = order.gates && (await (await import('./gates.ts')).findGates(client, order.gates))
  const options = { ...(await complete(runnable, gates, order)), ...gates?.options }
  if (order.plan) return showPlan(command, client, { ...order, options }, runnable, gates)
  const explained = (error: unknown) => explainNoHosts(client, error)
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

/** Shows hosts, batches, order and texts of what would run. */
async function showPlan(
  command: BaseCommand,
  client: Client,
  { target, options, deadline }: Order,
  runnable: Runnable,
  gates: FoundGates | undefined,
): Promise<PlanView> {
  const found = await selectHosts(client, target).catch((error: unknown) => explainNoHosts(client, error))
  const { planText, planView } = await import('./plan-view.ts')
  const plan = planView(found, options, planned(runnable), deadline, {
    verify: gates?.verify && planned(gates.verify),
    rollback: gates?.rollback && planned(gates.rollback),
  })
  command.print(planText(plan, found, process.stdout.isTTY))
  command.notice('plan only: nothing was run')
  return plan
}

/** Asks for confirmation before starting on many or all hosts, if interactive (contract §9). */
async function agreedTarget(
  command: BaseCommand,
  client: Client,
  { target, yes }: Order,
  runnable: Runnable,
): Promise<Target> {
  if (yes || !isSomeoneThere()) return target
  const { confirmTarget, intentOf } = await import('./consent.ts')
  return confirmTarget(client, target, { action: intentOf(runnable), server: command.serverName() })
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

/** Reports a reused key, so that its old result is not mistaken for a new one. */
function sayReplayed(command: BaseCommand, started: Started | Task): void {
  const after = 'replayedAfterSeconds' in started ? started.replayedAfterSeconds : null
  if (after === null) return
  const ago = `${after < 60 ? `${after} s` : showDuration(after * 1000)} ago`
  command.notice(
    `this key started task ${started.taskId} ${ago}; this is its result, and nothing new was started`,
  )
}

export function taskOutputs({ globals: { quiet, json } }: BaseCommand, show: ShowOptions): TaskDisplay {
  return new TaskDisplay({ show, quiet, json, progress: true, summarised: !json })
}

interface FollowOptions extends HaltOptions {
  /** Starts or identifies the task. `hostCount` is omitted if the outputs have already started. */
  readonly start: (signal: AbortSignal) => Promise<{ taskId: string; hostCount?: number }>
  /** Position and filter of the displayed log. */
  readonly query?: LogQuery
  readonly select?: (task: Task) => Task
}

/** Shows a task to its end and returns its exit code; handles signals and the deadline (contract §9). */
export async function followTask(options: FollowOptions): Promise<Followed> {
  const { outputs, select = (task: Task) => task } = options
  const halting = new Halting(options)
  let taskId: string | undefined
  try {
    const started = await halting.begin(options.start)
    taskId = started.taskId
    const { hostCount } = started
    if (hostCount !== undefined) await outputs.begin({ hostCount, alone: hostCount === 1 })
    const { end, last } = await showEvents(taskId, options, halting)
    const task = select(end ?? (await halting.read(taskId)))
    await outputs.end(task)
    return halting.outcomeOf(task, last)
  } catch (error) {
    // Keep the output so far, although the task's end is unknown.
    const { task } = outputs.known
    if (task !== undefined) await outputs.end(select(task))
    throw taskId === undefined || options.signals === 'leave' ? error : naming(taskId, error)
  } finally {
    halting.close()
    outputs.close()
  }
}

/** `end` is the task if the server sent it with results. */
async function showEvents(
  taskId: string,
  { client, outputs, query = {} }: FollowOptions,
  { signal }: Halting,
): Promise<{ end: Task | undefined; last: number | undefined }> {
  const silent = new SilentHosts((line) => outputs.notice(line))
  const onCut = ({ message }: Error, again: boolean) => {
    if (!again) outputs.notice(`${message}; trying again for 5 minutes (task ${taskId} keeps running)`)
  }
  let end: Partial<Task> | undefined
  let last = query.after
  try {
    for await (const event of watchTask(client.api, taskId, { query, signal, onCut })) {
      await outputs.event(event)
      if (query.hostId === undefined) silent.event(event)
      if (event.type === 'output') last = event.entry.id
      else if (event.type === 'end') end = event.task
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    silent.close()
  }
  return { end: end?.results !== undefined && end.taskId !== undefined ? (end as Task) : undefined, last }
}

/** Adds the task's id to errors after its start. */
function naming(taskId: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof Halted || error.message.includes(taskId)) return error
  const { code, fields, hint } =
    error instanceof RsmError ? error : { code: 'internal' as const, fields: [], hint: undefined }
  const message = error instanceof RsmError ? error.message : `internal error: ${error.message}`
  return new RsmError(code, `${message} (task ${taskId} was started)`, {
    fields,
    hint: [hint, `follow it: rsm logs -f ${taskId}`].filter((step) => step !== undefined).join('\n'),
    cause: error,
  })
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
