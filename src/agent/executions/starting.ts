import { mkdirSync } from 'node:fs'
import { RsmError } from '../../core/errors.ts'
import type { ExecuteScript, ScriptComplete } from '../../core/protocol/messages.ts'
import { firstStep, type Step } from '../../core/tasks/gates.ts'
import { lowerLimits } from '../../core/tasks/limits.ts'
import { isOfFiles, type Order } from '../files/order.ts'
import { type Account, findAccount } from '../processes/account.ts'
import { existing, workDirFault } from '../processes/inquiry.ts'
import { launch, ownProcesses, prepare, type Refusal, refusal, type Start } from '../processes/launch.ts'
import { markOf } from '../processes/machine.ts'
import { originOf } from '../processes/origin.ts'
import { barredUser } from '../processes/privileges.ts'
import { withoutSandbox } from '../processes/sandbox.ts'
import { type Execution, notRun } from './execution.ts'
import type { Started } from './journaled.ts'
import type { RunnerOptions } from './runner-options.ts'
import { identityOf } from './steps.ts'
import type { JournalWriter, Supervision } from './supervision.ts'

/** Fields of scripts only; the message schema does not reject unknown fields. */
const scriptFields = ['scriptName', 'upgrade', 'verify', 'rollback', 'stdin', 'limits', 'workDir'] as const

interface StartingOptions extends RunnerOptions {
  readonly journalWriter: JournalWriter
  readonly supervision: Supervision
  /** That it starts is in the journal, on disk. */
  readonly durable: () => void
}

interface Ready {
  /** What is launched: of an upgrade, the script that carries it out. */
  readonly toRun: ExecuteScript
  readonly start: Start
  readonly started: Started
}

/**
 * Starts the current step of an execution, which the journal knows before. Answers its end where it must not begin, else null.
 * Throws where the system or the disk refuses.
 */
export async function startStep(
  execution: Execution,
  request: Order,
  options: StartingOptions,
): Promise<ScriptComplete | null> {
  const { journal, clock, journalWriter, supervision } = options
  const { taskId, place, step } = execution
  const at = new Date(clock.now()).toISOString()
  const fault = request.workDir === undefined ? null : await workDirFault(request.workDir)
  if (fault !== null) return notRun(taskId, at, { exitCode: 126, error: fault })
  const found = accountOf(request, options)
  const account = found instanceof Promise ? await found : found
  if (execution.isGated) mkdirSync(place, { recursive: true, mode: 0o711 })
  const { toRun, start, started } = ready(request, step, place, account, options)
  // Before it is durable, so that its cgroups go when it can't be.
  execution.started = started
  journal.append(started)
  await journal.sync()
  options.durable()
  const workDir = toRun.workDir ?? (await existing(account.home))
  if (execution.isCancelled) return notRun(taskId, at, { status: 'CANCELLED' })
  const { root, exited, begin, abandon } = await launch(toRun, start, workDir)
  try {
    journal.append({ e: 'spawned', taskId, ...root })
  } catch (error) {
    abandon()
    throw error
  }
  begin()
  // From here on it runs: nothing that fails may pass for a start that failed.
  // One that never waited kept no copy.
  if (journal.records.get(taskId)?.received && !execution.isGated) journalWriter.dropCopy(execution)
  supervision.begin(execution, started, root, exited, clock.monotonic())
  return null
}

/** The account that an execution runs as. Rejects with RsmError where there is no such user. */
function accountOf(request: ExecuteScript, { own, runAs }: RunnerOptions): Account | Promise<Account> {
  const user = request.upgrade === undefined ? (request.runAs ?? runAs) : own.name
  return user === own.name ? own : findAccount(user)
}

/** Settles where and how an execution starts, and writes its script. Throws RsmError where it must not. */
function ready(
  request: Order,
  step: Step,
  directory: string,
  account: Account,
  options: RunnerOptions,
): Ready {
  if (isOfFiles(request)) return filesReady(request, directory, account, options)
  const { upgrade } = options
  const isUpgrade = request.upgrade !== undefined && upgrade !== null
  const toRun = isUpgrade ? upgrade(ofAgent(request), directory) : request
  const setting = isUpgrade ? ofOwn(options) : options
  const { start, started } = settle(toRun, step, directory, account, setting)
  prepare(toRun, start)
  if (request.stdin === undefined)
    return { toRun, start, started: isUpgrade ? { ...started, isUpgrade } : started }
  const delivery = options.files.delivery(request, directory, account)
  return { toRun, start: { ...start, delivery }, started: { ...started, isOfFiles: true } }
}

/** An upgrade without what holds scripts: it is the agent's own. */
function ofAgent(request: ExecuteScript): ExecuteScript {
  const { runAs: _runAs, workDir: _workDir, limits: _limits, ...own } = request
  return own
}

/** The options without what holds scripts, for work of this very program. */
const ofOwn = (options: RunnerOptions): RunnerOptions => ({
  ...options,
  sandbox: withoutSandbox(options.own),
  ceiling: {},
})

/** A process of the agent's own user, which becomes the account before it touches any file. */
function filesReady(request: Order, directory: string, account: Account, options: RunnerOptions): Ready {
  const { own, sandbox, files } = options
  sandbox.admit(account)
  const toRun = files.script(request, directory, account)
  const { start, started } = settle(toRun, firstStep, directory, own, ofOwn(options))
  prepare(toRun, start)
  return { toRun, start, started: { ...started, isOfFiles: true } }
}

/**
 * Settles in what box and under which limits a script starts, makes the cgroups that hold it, and says what the journal
 * keeps of it. Throws RsmError where it must not run, or not so.
 */
function settle(
  request: ExecuteScript,
  step: Step,
  directory: string,
  account: Account,
  options: RunnerOptions,
): { start: Start; started: Started } {
  const { sandbox, limiter, containment, ceiling, journal, clock, machine } = options
  const { taskId, workDir } = request
  sandbox.admit(account)
  if (workDir !== undefined && sandbox.hides(workDir, account))
    throw new RsmError('not_found', `the working directory ${workDir} is not in the sandbox of this agent`)
  const { phase, attempt } = step
  const identity = identityOf(taskId, step)
  const cgroup = containment.create(identity)
  const limits = lowerLimits(request.limits ?? {}, ceiling)
  const limited = limiter.create(identity, limits, cgroup, ownProcesses(sandbox))
  const mark = markOf(journal.storeId, identity)
  const start = { directory, account, mark, sandbox, cgroup, limitGroups: limited.groups }
  const started: Started = {
    e: 'started',
    taskId,
    ...originOf(directory, machine),
    startedAt: new Date(clock.now()).toISOString(),
    uptime: machine.uptime(),
    timeout: request.timeout,
    maxOutputBytes: request.maxOutputBytes,
    cgroup,
    uid: account.uid,
    mark,
    ...(phase === 'SCRIPT' ? {} : { phase, attempt }),
    ...(limited.groups.length > 0 ? { limited } : {}),
    ...(sandbox.mode === 'strict' ? { isBoxed: true } : {}),
  }
  return { start, started }
}

/** Checks what can be known before the start. An upgrade always comes signed, whatever else an agent takes. */
export function refusalOf(request: Order, options: RunnerOptions): Refusal | null {
  const refuse = (error: string): Refusal => ({ exitCode: 126, error })
  if (isOfFiles(request)) {
    const wrong = scriptFields.find((name) => request[name] !== undefined)
    if (wrong !== undefined) return refuse(`invalid order: a file transfer has no field ${wrong}`)
    const barred = barredUser(request.runAs ?? options.runAs, options)
    if (barred !== null) return refuse(barred)
    return options.sandbox.mode === 'strict'
      ? refuse('this agent copies no files: its --sandbox strict lets nothing reach those of the host')
      : null
  }
  if (request.upgrade === undefined) return scriptsRefusal(request, options)
  if (!request.signature) return refuse('signature missing: an upgrade has to be signed by the server')
  if (options.upgrade === null) return refuse('this agent takes no upgrades: it is a part of rsm quickstart')
  return refusal(ofAgent(request), { ...options, runAs: options.own.name })
}

/** Judges the gates of a script, too: all of it is refused before anything starts. */
function scriptsRefusal(request: ExecuteScript, options: RunnerOptions): Refusal | null {
  for (const each of [request, request.verify, request.rollback]) {
    const refused = each && refusal({ ...request, script: each.script, scriptType: each.scriptType }, options)
    if (refused) return refused
  }
  return null
}
