import { RsmError } from '../../core/errors.ts'
import type { SandboxMode } from '../../core/hosts/host.ts'
import type { Setting } from '../../core/protocol/http/host-agent.ts'
import { type Limits, limitWords, notEnforced } from '../../core/tasks/limits.ts'
import type { Log } from '../log.ts'
import {
  type Account,
  checkDrop,
  checkReach,
  directoryPatience,
  directorySilent,
  findAccount,
  namedAccount,
  ownAccount,
} from './account.ts'
import { type Containment, findContainment } from './containment.ts'
import { findLimiter, type Limiter } from './limits.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'

/** What the agent was told of how scripts run. */
export interface ScriptOptions {
  /** The user that scripts run as by default: the agent's own. */
  runAs?: string | undefined
  /** Users that a task may ask for. */
  allowRunAs: string[]
  sandbox?: SandboxMode | undefined
  /** Whether scripts in a strict sandbox reach the network. */
  sandboxNetwork?: boolean | undefined
  /** What no execution may exceed. */
  limits?: Limits | undefined
}

/** The agent's own user, and whom scripts run as. */
interface Accounts {
  readonly own: Account
  readonly account: Account
  /** Whether scripts may run as users other than the agent's, who need access to their files. */
  readonly hasOthers: boolean
}

/** Whom scripts run as, and in what box. */
export interface ScriptSetting extends Accounts {
  readonly sandbox: Sandbox
}

/**
 * Finds out before anything else whether this host can run scripts as whom it was told to. @throws RsmError `usage` or
 * `unavailable` with what it can't do.
 */
export async function checkAccounts(options: ScriptOptions): Promise<Accounts> {
  const { runAs, allowRunAs, sandbox: mode = 'none', sandboxNetwork: network = false } = options
  if (network && mode !== 'strict')
    throw new RsmError(
      'usage',
      '--sandbox-network is for --sandbox strict: only there is the network cut off',
      {
        hint: 'add --sandbox strict, or leave --sandbox-network out',
      },
    )
  const own = ownAccount()
  const account = runAs === undefined ? own : await namedAccount(runAs, own)
  const hasOthers = own.uid === 0 && (account.uid !== 0 || allowRunAs.length > 0)
  if (hasOthers) await checkDrop(account)
  return { own, account, hasOthers }
}

/** The same of the box, which hides the agent's data directory. */
export async function checkSandbox(
  { sandbox: mode = 'none', sandboxNetwork: network = false }: ScriptOptions,
  { own, account, hasOthers }: Accounts,
  dataDir: string,
): Promise<ScriptSetting> {
  const sandbox = await openSandbox({ mode, network, dataDir, own }, account)
  if (mode !== 'strict' && account.uid !== own.uid) await checkReach(account, dataDir)
  return { own, account, hasOthers, sandbox }
}

export function warnOfRoot({ account, sandbox }: ScriptSetting, log: Log): void {
  if (account.uid === 0 && sandbox.mode === 'none')
    log('WARN', 'scripts run as root without a sandbox: each can do anything on this host', {
      hint: '--run-as USER, or --sandbox strict',
    })
}

/** A directory service may come up after the agent, so an unknown name is no reason not to start. */
export async function warnOfUnknown(
  allowRunAs: readonly string[],
  log: Log,
  { dataDir, patience = directoryPatience }: { dataDir: string | null; patience?: number },
): Promise<void> {
  const warn = (name: string, why: string, more?: Record<string, unknown>) =>
    log('WARN', `--allow-run-as ${name}: ${why}; tasks that ask for it get 126`, more)
  for (const name of allowRunAs) {
    const found = await findAccount(name, patience).catch((error: unknown) => error)
    if (found instanceof Error) {
      const isSilent = found instanceof RsmError && found.code === 'unavailable'
      warn(name, isSilent ? directorySilent : 'there is no such user on this host')
      // Each of the others would be waited for as long.
      if (isSilent) return
    } else if (dataDir !== null)
      await checkReach(found as Account, dataDir).catch((error: RsmError) =>
        warn(name, error.message, { hint: error.hint }),
      )
  }
}

export interface Bounds {
  readonly containment: Containment
  readonly limiter: Limiter
  readonly ceiling: Limits
}

/** How trees are held and limited here. @throws RsmError `unavailable` when the agent's own limits can't be enforced. */
export function checkBounds(storeId: string, mode: SandboxMode, ceiling: Limits = {}): Bounds {
  const containment = findContainment(storeId, mode === 'strict')
  const limiter = findLimiter(storeId, containment.level === 'cgroup')
  checkCeiling(ceiling, limiter)
  return { containment, limiter, ceiling }
}

/** @throws RsmError `unavailable` for a limit that this host can't enforce. */
export function checkCeiling(ceiling: Limits, limiter: Limiter): void {
  const [missing] = notEnforced(ceiling, limiter.enforced)
  if (missing === undefined) return
  throw new RsmError('unavailable', `--limit ${limitWords[missing]}: ${limiter.lack(missing)}`, {
    hint: 'run the agent as root, under systemd with Delegate=yes and DelegateSubgroup=agent',
  })
}

type KnownSetting = { [K in keyof Setting]: NonNullable<Setting[K]> }

/** What is said of them to the server, and to who asks on this host; of bounds nothing before the registration. */
export function settingHere(script: ScriptSetting, bounds: Bounds): KnownSetting
export function settingHere(script: ScriptSetting, bounds: null): Setting
export function settingHere({ account, sandbox }: ScriptSetting, bounds: Bounds | null): Setting {
  return {
    runAs: account.name,
    runsAsRoot: account.uid === 0,
    sandbox: sandbox.mode,
    containment: bounds && bounds.containment.level,
    enforces: bounds && [...bounds.limiter.enforced],
  }
}
