import { RsmError } from '../../core/errors.ts'
import type { SandboxMode } from '../../core/hosts/host.ts'
import type { Setting } from '../../core/protocol/http/hosts.ts'
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

export interface ScriptOptions {
  /** Default user of scripts: the agent's own. */
  runAs?: string | undefined
  /** Users that a task may request. */
  allowRunAs: string[]
  sandbox?: SandboxMode | undefined
  /** Whether scripts in a strict sandbox reach the network. */
  sandboxNetwork?: boolean | undefined
  /** Limits that no execution may exceed. */
  limits?: Limits | undefined
}

/** The agent's own user, and the default user of scripts. */
interface Accounts {
  readonly own: Account
  readonly account: Account
  /** Whether scripts may run as users other than the agent's, which need access to their files. */
  readonly hasOthers: boolean
}

export interface ScriptSetting extends Accounts {
  readonly sandbox: Sandbox
}

/**
 * Checks first whether this host can run scripts as configured. @throws RsmError `usage` or `unavailable`
 * with what it cannot do.
 */
export async function checkAccounts(options: ScriptOptions): Promise<Accounts> {
  const { runAs, allowRunAs, sandbox: mode = 'none', sandboxNetwork: network = false } = options
  if (network && mode !== 'strict')
    throw new RsmError('usage', '--sandbox-network is for --sandbox strict: only that cuts off the network', {
      hint: 'add --sandbox strict, or omit --sandbox-network',
    })
  const own = ownAccount()
  const account = runAs === undefined ? own : await namedAccount(runAs, own)
  const hasOthers = own.uid === 0 && (account.uid !== 0 || allowRunAs.length > 0)
  if (hasOthers) await checkDrop(account)
  return { own, account, hasOthers }
}

/** Checks the sandbox, which hides the agent's data directory. */
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

/** Warns only, because a directory service may come up after the agent. */
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
      // Each of the others would time out too.
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

/** Containment and limits of trees. @throws RsmError `unavailable` if the agent cannot enforce its own. */
export function checkBounds(storeId: string, mode: SandboxMode, ceiling: Limits = {}): Bounds {
  const containment = findContainment(storeId, mode === 'strict')
  const limiter = findLimiter(storeId, containment.level === 'cgroup')
  checkCeiling(ceiling, limiter)
  return { containment, limiter, ceiling }
}

/** @throws RsmError `unavailable` for a limit that this host cannot enforce. */
export function checkCeiling(ceiling: Limits, limiter: Limiter): void {
  const [missing] = notEnforced(ceiling, limiter.enforced)
  if (missing === undefined) return
  throw new RsmError('unavailable', `--limit ${limitWords[missing]}: ${limiter.lack(missing)}`, {
    hint: 'run the agent as root, under systemd with Delegate=yes and DelegateSubgroup=agent',
  })
}

type KnownSetting = { [K in keyof Setting]: NonNullable<Setting[K]> }

/** Settings as reported to the server and on this host; bounds are unknown before the registration. */
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
