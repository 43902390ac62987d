import { type FieldFault, invalid } from '../../../core/errors.ts'
import type { Target } from '../../../core/protocol/http/clusters.ts'
import type { ExecutionOptions, Install, TaskCreate } from '../../../core/protocol/http/tasks.ts'
import type { UpgradeOrder } from '../../../core/protocol/messages.ts'
import { compareVersions } from '../../../core/release.ts'
import { upgradeTimeout } from '../../../core/tasks/plan.ts'
import type { SignedBuild } from '../../agents/releases/releases.ts'
import { demand, demandLasting, type UserCaller } from '../../storage/ports/caller.ts'
import type { InstallOrder } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'
import { checkedAddress } from '../enrollments.ts'
import { hostsOf } from '../targets.ts'
import { batchFaults } from './new-task.ts'
import type { NewTask } from './start-task.ts'

/** Seconds for one host: time to send 120 MB over a slow line and to link. */
const defaultTimeout = 900

/** Script-only options: reject them rather than ignore them. */
const notForInstall = [
  'params',
  'secretParams',
  'queueSeconds',
  'workDir',
  'runAs',
  'limits',
  'maxOutputBytes',
  'verify',
  'rollback',
  'stdin',
  'limitRate',
] as const

interface Asked {
  readonly install: Install
  /** Path in the body, with its trailing dot: `install.`. */
  readonly field: string
  readonly target: Target
  readonly options: ExecutionOptions
}

export async function installTask(
  context: Context,
  { install, field, target, options }: Asked,
): Promise<NewTask> {
  const faults: FieldFault[] = notForInstall
    .filter((name) => options[name] !== undefined)
    .map((name) => ({ field: name, message: 'is for scripts only: leave it out' }))
  faults.push(...batchFaults(options))
  if (faults.length > 0) throw invalid(faults)
  const order = installOrder(context, install, field)
  const { hostIds, clusterId } = await hostsOf(context, target, 'target')
  return {
    scriptId: null,
    scriptVersion: null,
    scriptName: null,
    type: 'INSTALL',
    content: '',
    install: order,
    timeout: options.timeout ?? defaultTimeout,
    clusterId,
    hostIds,
    retryOf: null,
    options,
  }
}

function installOrder(context: Context, install: Install, field: string): InstallOrder {
  const { sudo = false, forgetCredentials = false } = install
  const { url, fingerprint } = checkedAddress(install, field)
  const known = context.handedOut.joining.urlFor(url)
  if (known === null)
    throw invalid([
      {
        field: `${field}url`,
        message: 'is required, because this server has no --public-url: the URL by which hosts reach it',
      },
    ])
  return { sudo, forgetCredentials, url: known, fingerprint: fingerprint ?? null }
}

/** Requires `lasting` rights, because the agent outlives the caller's token. @throws RsmError `forbidden`. */
export function demandInstall(caller: UserCaller): void {
  demand(caller, 'administer')
  demandLasting(caller)
}

/** Script-only options: reject them rather than ignore them. */
const notForUpgrade = [
  'params',
  'secretParams',
  'workDir',
  'runAs',
  'limits',
  'verify',
  'rollback',
  'stdin',
  'limitRate',
] as const

/** The task that upgrades agents. Rejects with `invalid`, listing all faults. */
export async function newUpgrade(context: Context, input: TaskCreate): Promise<NewTask> {
  const { upgrade = {}, target, scriptId: _, script: _script, ...options } = input
  const order = upgradeOrder(await context.handedOut.releases.signed(), upgrade)
  const faults = [
    ...notForUpgrade
      .filter((field) => options[field] !== undefined)
      .map((field) => ({ field, message: 'is for scripts only, not for an upgrade' })),
    ...batchFaults(options),
    ...('field' in order ? [order] : []),
  ]
  if (faults.length > 0 || 'field' in order) throw invalid(faults)
  const hosts = await hostsOf(context, target, 'target')
  const { timeout = upgradeTimeout } = options
  return {
    scriptId: null,
    scriptVersion: null,
    scriptName: null,
    type: 'UPGRADE',
    content: '',
    timeout,
    hasDefaultTimeout: options.timeout === undefined,
    ...hosts,
    retryOf: null,
    upgrade: order,
    options,
  }
}

/** The order to upgrade to a version with signed builds on this server: the requested one, else the newest. */
function upgradeOrder(
  builds: readonly SignedBuild[],
  { version: wanted, allowDowngrade }: NonNullable<TaskCreate['upgrade']>,
): UpgradeOrder | FieldFault {
  const versions = [...new Set(builds.map(({ release }) => release.version))]
  const version =
    wanted ??
    versions.reduce<string | undefined>(
      (newest, each) => (newest === undefined || isNewer(each, newest) ? each : newest),
      undefined,
    )
  const advice = 'on its machine: rsm server releases add FILE, with FILE.sig beside it'
  if (version === undefined || !versions.includes(version)) {
    const has =
      versions.length === 0 ? 'no signed release' : `signed releases of ${versions.join(' and ')} only`
    return { field: 'upgrade.version', message: `this server has ${has}; ${advice}` }
  }
  return {
    version,
    ...(allowDowngrade === true && { allowDowngrade }),
    builds: builds
      .filter(({ release }) => release.version === version)
      .map(({ arch, size, sha256, release: { signature } }) => ({ arch, size, sha256, signature })),
  }
}

const isNewer = (one: string, other: string) => compareVersions(one, other)?.isNewer === true
