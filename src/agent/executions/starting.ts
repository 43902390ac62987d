import { mkdirSync } from 'node:fs'
import { RsmError } from '../../core/errors.ts'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Order, ScriptOrder } from '../../core/protocol/orders.ts'
import { variableFault } from '../../core/scripts/params.ts'
import { interpreterOf } from '../../core/scripts/script-form.ts'
import { type Limits, lowerLimits, notEnforced } from '../../core/tasks/limits.ts'
import type { ThrottledErrors } from '../log.ts'
import { type Account, barredUser, findAccount } from '../processes/account.ts'
import { existing, workDirFault } from '../processes/file-systems.ts'
import { launch, ownProcesses, prepare, type Start } from '../processes/launch.ts'
import { originOf, tagOf } from '../processes/machine.ts'
import { findInPath } from '../processes/programs.ts'
import { withoutSandbox } from '../processes/sandbox.ts'
import { type Execution, notRun } from './execution.ts'
import { dropOrder } from './execution-queue.ts'
import type { Started } from './journaled.ts'
import type { RunnerOptions } from './runner-options.ts'
import { identityOf } from './steps.ts'
import type { Supervision } from './supervision.ts'

/** Fields of scripts only; the message schema does not reject unknown fields. */
const scriptFields = ['scriptName', 'upgrade', 'verify', 'rollback', 'stdin', 'limits', 'workDir'] as const
const noUpgrades = 'this agent cannot be upgraded: it is part of rsm quickstart'

interface StartingOptions extends RunnerOptions {
  readonly errors: ThrottledErrors
  readonly supervision: Supervision
  /** Called once the start is durable in the journal. */
  readonly durable: () => void
}

/**
 * Starts the current step of an execution, after journaling it. Returns its result if it must not begin, else
 * null. Throws if the system or the disk refuses.
 */
export async function startStep(
  execution: Execution,
  order: Order,
  options: StartingOptions,
): Promise<ScriptComplete | null> {
  const { journal, clock, errors, supervision } = options
  const { taskId, place } = execution
  const at = new Date(clock.now()).toISOString()
  const workDir = order.kind === 'SCRIPT' ? order.workDir : undefined
  const fault = workDir === undefined ? null : await workDirFault(workDir)
  if (fault !== null) return notRun(taskId, at, { exitCode: 126, error: fault })
  const found = accountOf(order, options)
  const account = found instanceof Promise ? await found : found
  if (execution.isGated) mkdirSync(place, { recursive: true, mode: 0o711 })
  const { start, started } = settle(execution, order, workOf(order, place, account, options), options)
  prepare(start)
  // Set before the journal line, so that its cgroups are removed if that fails.
  execution.started = started
  journal.append(started)
  await journal.sync()
  options.durable()
  const directory = order.kind === 'SCRIPT' ? (workDir ?? (await existing(account.home))) : '/'
  if (execution.isCancelled) return notRun(taskId, at, { status: 'CANCELLED' })
  const { root, exited, begin, abandon } = await launch(start, directory)
  try {
    journal.append({ e: 'spawned', taskId, ...root })
  } catch (error) {
    abandon()
    throw error
  }
  begin()
  // From here on it runs: no failure may pass for a failed start. Without queueing there is no saved order.
  if (journal.records.get(taskId)?.received && !execution.isGated) dropOrder(execution, errors)
  supervision.begin(execution, started, root, exited, clock.monotonic())
  return null
}

/** The account an order runs as. Rejects with RsmError if the user does not exist. */
function accountOf(order: Order, { own, runAs }: RunnerOptions): Account | Promise<Account> {
  const user = order.kind === 'UPGRADE' ? own.name : (order.runAs ?? runAs)
  return user === own.name ? own : findAccount(user)
}

/** Program of an order and its confinement; `notes` tell the journal where its result is found. */
interface Work extends Pick<Start, 'program' | 'account' | 'sandbox' | 'delivery'> {
  readonly limits: Limits
  readonly timeout: number
  readonly notes?: Pick<Started, 'isOfFiles' | 'isUpgrade'>
}

/** Writes the order files of child processes of rsm. Throws RsmError if the order must not run. */
function workOf(order: Order, directory: string, account: Account, options: RunnerOptions): Work {
  const { own, sandbox, files, upgrade } = options
  const asAgent = { account: own, sandbox: withoutSandbox(own), limits: {} }
  const { taskId, timeout } = order
  switch (order.kind) {
    case 'SCRIPT': {
      const { workDir, stdin } = order
      sandbox.admit(account)
      if (workDir !== undefined && sandbox.hides(workDir, account))
        throw new RsmError('not_found', `the working directory ${workDir} is not in this agent's sandbox`)
      const limits = lowerLimits(order.limits ?? {}, options.ceiling)
      const script = { program: { script: order }, account, sandbox, limits, timeout }
      if (stdin === undefined) return script
      const delivery = files(directory, { taskId, runAs: null, stdin })
      return { ...script, delivery, notes: { isOfFiles: true } }
    }
    case 'UPGRADE': {
      if (upgrade === null) throw new RsmError('unavailable', noUpgrades)
      // It ends on its own: a timeout must not leave a new release without its watching process.
      const program = { argv: upgrade(directory, order) }
      return { ...asAgent, program, timeout: 0, notes: { isUpgrade: true } }
    }
    case 'COPY':
    case 'FETCH': {
      sandbox.admit(account)
      const { name, uid, gid } = account
      // Starts as the agent, whose token it reads, and switches to the account before it touches any file.
      const runAs = uid === own.uid ? null : { name, uid, gid }
      const what = order.kind === 'COPY' ? { copy: order.copy } : { fetch: order.fetch }
      const program = { argv: files(directory, { taskId, runAs, ...what }) }
      return { ...asAgent, program, timeout, notes: { isOfFiles: true } }
    }
  }
}

/** Creates the cgroups of the current step, and the journal line of its start. */
function settle(
  { taskId, place, step }: Execution,
  { maxOutputBytes }: Order,
  { limits, timeout, notes, ...work }: Work,
  { limiter, containment, journal, clock, machine }: RunnerOptions,
): { start: Start; started: Started } {
  const { account, sandbox } = work
  const { phase, attempt } = step
  const identity = identityOf(taskId, step)
  const cgroup = containment.create(identity)
  const limited = limiter.create(identity, limits, cgroup, ownProcesses(sandbox))
  const tag = tagOf(journal.storeId, identity)
  const start = { ...work, taskId, directory: place, tag, cgroup, limitGroups: limited.groups }
  const started: Started = {
    e: 'started',
    taskId,
    ...originOf(place, machine),
    startedAt: new Date(clock.now()).toISOString(),
    uptime: machine.uptime(),
    timeout,
    maxOutputBytes,
    cgroup,
    uid: account.uid,
    mark: tag,
    ...(phase === 'SCRIPT' ? {} : { phase, attempt }),
    ...(limited.groups.length > 0 ? { limited } : {}),
    ...(sandbox.mode === 'strict' ? { isBoxed: true } : {}),
    ...notes,
  }
  return { start, started }
}

/** Reason for refusing an order, with its exit code (contract §4). */
interface Refusal {
  readonly exitCode: 126 | 127
  readonly error: string
}

/**
 * Checks an order before anything starts, including all gates of a script. An upgrade needs a signature,
 * whatever else an agent accepts unsigned.
 */
export function refusalOf(order: Order, options: RunnerOptions): Refusal | null {
  const refuse = (error: string): Refusal => ({ exitCode: 126, error })
  switch (order.kind) {
    case 'SCRIPT':
      for (const each of [order, order.verify, order.rollback]) {
        const refused = each && scriptRefusal({ ...order, ...each }, options)
        if (refused) return refused
      }
      return null
    case 'UPGRADE':
      if (!order.signature) return refuse('signature missing: the server must sign upgrades')
      return options.upgrade === null ? refuse(noUpgrades) : null
    case 'COPY':
    case 'FETCH': {
      const wrong = scriptFields.find((name) => name in order)
      if (wrong !== undefined) return refuse(`invalid order: a file transfer has no field ${wrong}`)
      const barred = barredUser(order.runAs ?? options.runAs, options)
      if (barred !== null) return refuse(barred)
      return options.sandbox.mode === 'strict'
        ? refuse("this agent copies no files: its --sandbox strict hides the host's files")
        : null
    }
  }
}

function scriptRefusal(script: ScriptOrder, options: RunnerOptions): Refusal | null {
  const { runAs, limiter } = options
  const barred = barredUser(script.runAs ?? runAs, options)
  if (barred !== null) return { exitCode: 126, error: barred }
  const [missing] = notEnforced(script.limits ?? {}, limiter.enforced)
  if (missing !== undefined) return { exitCode: 126, error: limiter.lack(missing) }
  const { program } = interpreterOf(script.scriptType, script.script)
  if (findInPath(program) === undefined)
    return { exitCode: 127, error: `${program} is not installed on this host` }
  for (const [name, value] of Object.entries(script.params)) {
    const fault = variableFault(name, value)
    if (fault !== null) return { exitCode: 126, error: `the parameter ${JSON.stringify(name)} ${fault}` }
  }
  return null
}
