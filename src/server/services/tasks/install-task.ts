import { type FieldFault, invalid } from '../../../core/errors.ts'
import type { Target } from '../../../core/protocol/http/targets.ts'
import type { ExecutionOptions, Install } from '../../../core/protocol/http/tasks.ts'
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
const ofScripts = [
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

/** Requires `lasting` rights, because the agent outlives the caller's token. @throws RsmError `forbidden`. */
export function demandInstall(caller: UserCaller): void {
  demand(caller, 'administer')
  demandLasting(caller)
}

function orderOf(context: Context, install: Install, field: string): InstallOrder {
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
  const faults: FieldFault[] = ofScripts
    .filter((name) => options[name] !== undefined)
    .map((name) => ({ field: name, message: 'is for scripts only: leave it out' }))
  faults.push(...batchFaults(options))
  if (faults.length > 0) throw invalid(faults)
  const order = orderOf(context, install, field)
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
