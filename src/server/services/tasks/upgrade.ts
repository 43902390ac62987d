import { type FieldFault, invalid } from '../../../core/errors.ts'
import type { TaskCreate } from '../../../core/protocol/http/tasks.ts'
import type { UpgradeOrder } from '../../../core/protocol/messages.ts'
import { compareVersions } from '../../../core/release.ts'
import { upgradeTimeout } from '../../../core/tasks/plan.ts'
import type { SignedBuild } from '../../agents/releases/releases.ts'
import type { Context } from '../context.ts'
import { hostsOf } from '../targets.ts'
import { batchFaults } from './new-task.ts'
import type { NewTask } from './start-task.ts'

/** Script-only options: reject them rather than ignore them. */
const forScripts = [
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

const isNewer = (one: string, other: string) => compareVersions(one, other)?.isNewer === true

/** The order to upgrade to a version with signed builds on this server: the requested one, else the newest. */
function orderOf(
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

/** The task that upgrades agents. Rejects with `invalid`, listing all faults. */
export async function newUpgrade(context: Context, input: TaskCreate): Promise<NewTask> {
  const { upgrade = {}, target, scriptId: _, script: _script, ...options } = input
  const order = orderOf(await context.handedOut.releases.signed(), upgrade)
  const faults = [
    ...forScripts
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
