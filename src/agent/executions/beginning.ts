import type { ExecuteScript } from '../../core/protocol/messages.ts'
import { firstStep, type Step } from '../../core/tasks/gates.ts'
import { isOfFiles, type Order } from '../files/order.ts'
import { type Account, findAccount } from '../processes/account.ts'
import { prepare, type Refusal, refusal, type Start } from '../processes/launch.ts'
import { barredUser } from '../processes/privileges.ts'
import { withoutSandbox } from '../processes/sandbox.ts'
import type { Started } from './journaled.ts'
import { place } from './placement.ts'
import type { RunnerOptions } from './runner-options.ts'

/** Fields of scripts only; the message schema does not reject unknown fields. */
const scriptFields = ['scriptName', 'upgrade', 'verify', 'rollback', 'stdin', 'limits', 'workDir'] as const

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

/** Of what follows on a script, too: it is refused before anything starts. */
function scriptsRefusal(request: ExecuteScript, options: RunnerOptions): Refusal | null {
  for (const each of [request, request.verify, request.rollback]) {
    const refused = each && refusal({ ...request, script: each.script, scriptType: each.scriptType }, options)
    if (refused) return refused
  }
  return null
}

/** An upgrade is the agent's own, whatever its scripts are held to. */
function ofAgent(request: ExecuteScript): ExecuteScript {
  const { runAs: _runAs, workDir: _workDir, limits: _limits, ...own } = request
  return own
}

interface Ready {
  /** What is launched: of an upgrade, the script that carries it out. */
  readonly toRun: ExecuteScript
  readonly start: Start
  readonly started: Started
}

/** As whom an execution runs. Rejects with RsmError where there is no such user. */
export function accountOf(request: ExecuteScript, { own, runAs }: RunnerOptions): Account | Promise<Account> {
  const user = request.upgrade === undefined ? (request.runAs ?? runAs) : own.name
  return user === own.name ? own : findAccount(user)
}

/** Settles where and how an execution starts, and writes its script. Throws RsmError where it must not. */
export function ready(
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
  const { start, started } = place(toRun, step, directory, account, setting)
  prepare(toRun, start)
  if (request.stdin === undefined)
    return { toRun, start, started: isUpgrade ? { ...started, isUpgrade } : started }
  const delivery = options.files.delivery(request, directory, account)
  return { toRun, start: { ...start, delivery }, started: { ...started, isOfFiles: true } }
}

/** What this very program does, whatever its scripts are held to. */
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
  const { start, started } = place(toRun, firstStep, directory, own, ofOwn(options))
  prepare(toRun, start)
  return { toRun, start, started: { ...started, isOfFiles: true } }
}
