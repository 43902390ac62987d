import type { ExecuteScript } from '../../core/protocol/messages.ts'
import { type Account, findAccount } from '../script/account.ts'
import { prepare, type Refusal, refusal, type Start } from '../script/launch.ts'
import { withoutSandbox } from '../script/sandbox.ts'
import type { Started } from './journaled.ts'
import { place } from './placement.ts'
import type { RunnerOptions } from './runner-options.ts'

/** Checks what can be known before the start. An upgrade always comes signed, whatever else an agent takes. */
export function refusalOf(request: ExecuteScript, options: RunnerOptions): Refusal | null {
  if (request.upgrade === undefined) return refusal(request, options)
  const refuse = (error: string): Refusal => ({ exitCode: 126, error })
  if (!request.signature) return refuse('signature missing: an upgrade has to be signed by the server')
  if (options.upgrade === null) return refuse('this agent takes no upgrades: it is a part of rsm quickstart')
  return refusal(ofAgent(request), { ...options, runAs: options.own.name })
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
  request: ExecuteScript,
  directory: string,
  account: Account,
  options: RunnerOptions,
): Ready {
  const { own, upgrade } = options
  const isUpgrade = request.upgrade !== undefined && upgrade !== null
  const toRun = isUpgrade ? upgrade(ofAgent(request), directory) : request
  const setting = isUpgrade ? { ...options, sandbox: withoutSandbox(own), ceiling: {} } : options
  const { start, started } = place(toRun, directory, account, setting)
  prepare(toRun, start)
  return { toRun, start, started: isUpgrade ? { ...started, isUpgrade } : started }
}
