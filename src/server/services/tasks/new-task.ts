import { type FieldFault, invalid } from '../../../core/errors.ts'
import type { ExecutionOptions, Target } from '../../../core/protocol/http/tasks.ts'
import { jointFaults, paramFaults } from '../../../core/scripts/params.ts'
import { parseSelector } from '../../../core/selector/parse.ts'
import { whyEmpty } from '../../../core/selector/why-empty.ts'
import { defaultTimeout } from '../../../core/tasks/plan.ts'
import { unknownName } from '../../../core/text/nearest.ts'
import { runInSlices } from '../../hosts/slices.ts'
import { unknownHosts } from '../clusters.ts'
import type { Context } from '../context.ts'
import { contentFaults } from '../scripts.ts'
import { askedGates, declaredOf, type ScriptToRun } from './scripts-of-task.ts'
import type { NewTask } from './start-task.ts'

/** What would be without effect: somebody relies on it, and the whole fleet would run at once. */
export function batchFaults({
  strategy = 'PARALLEL',
  batchSize,
  pauseSeconds = 0,
}: ExecutionOptions): FieldFault[] {
  const faults: FieldFault[] = []
  if (batchSize !== undefined && strategy !== 'ROLLING')
    faults.push({
      field: 'batchSize',
      message: `is for ROLLING, not ${strategy}: give "strategy": "ROLLING" with it`,
    })
  if (pauseSeconds > 0 && strategy === 'PARALLEL')
    faults.push({
      field: 'pauseSeconds',
      message:
        'is between batches, and PARALLEL has one only: give "strategy": "ROLLING" or "SEQUENTIAL" with it',
    })
  return faults
}

/** Hosts in the order of the plan, each once; faults carry `prefix`. `awaits`: as `Fleet.select` has it. */
export async function resolveTarget(
  context: Context,
  target: Target,
  prefix: string,
  awaits = false,
): Promise<{ hostIds: number[]; clusterId: number | null }> {
  const { store, fleet } = context
  const { hostIds, clusterId, selector } = target
  const given = [hostIds, clusterId, selector].filter((one) => one !== undefined).length
  if (given !== 1)
    throw invalid([
      { field: prefix || 'target', message: 'give exactly one of hostIds, clusterId and selector' },
    ])
  const dot = prefix ? `${prefix}.` : ''
  if (selector !== undefined)
    return { hostIds: await fleet.select(selector, `${dot}selector`, awaits), clusterId: null }
  if (hostIds !== undefined) {
    const faults = await unknownHosts(context, hostIds, `${dot}hostIds`)
    if (faults.length > 0) throw invalid(faults)
    return { hostIds: [...new Set(hostIds)], clusterId: null }
  }
  const id = clusterId ?? 0
  const cluster = await store.get('clusters', id)
  if (!cluster) throw invalid([{ field: `${dot}clusterId`, message: unknownName('cluster', String(id), []) }])
  return { hostIds: await fleet.targets(cluster, `${dot}clusterId`, awaits), clusterId: id }
}

/** Why a target that is good names no host, where that can be said. */
async function whyNone({ store, fleet }: Context, { clusterId, selector }: Target): Promise<string | null> {
  if (selector !== undefined) return runInSlices(whyEmpty(parseSelector(selector), await fleet.directory()))
  const cluster = clusterId === undefined ? undefined : await store.get('clusters', clusterId)
  return cluster ? `cluster ${cluster.name} has no hosts` : null
}

/** The hosts of a target. Throws `invalid` where it names none. */
export async function hostsOf(
  context: Context,
  target: Target,
  targetField: string,
  awaits = false,
): Promise<{ hostIds: number[]; clusterId: number | null }> {
  const { hostIds, clusterId } = await resolveTarget(context, target, targetField, awaits)
  if (hostIds.length === 0) {
    const field = target.hostIds
      ? [targetField, 'hostIds'].filter(Boolean).join('.')
      : targetField || 'clusterId'
    const why = await whyNone(context, target)
    throw invalid([{ field, message: why === null ? 'matches no host' : `matches no host: ${why}` }])
  }
  return { hostIds, clusterId }
}

/** What a request asks for: on which hosts, where a fault of that is shown, and how. */
interface Asked {
  target: Target
  targetField: string
  options: ExecutionOptions
}

/** What runs, and how, without the hosts. Throws `invalid` with all that is wrong with the script and the options. */
export async function checkedRun(
  context: Context,
  script: ScriptToRun | FieldFault,
  options: ExecutionOptions,
): Promise<Omit<NewTask, 'hostIds' | 'clusterId'>> {
  const { params = {}, secretParams = {} } = options
  const faults = [
    ...paramFaults('params', params),
    ...paramFaults('secretParams', secretParams),
    ...jointFaults(params, secretParams),
    ...batchFaults(options),
  ]
  faults.push(...('message' in script ? [script] : contentFaults(script.type, script.content, script.field)))
  const asked = await askedGates(context, options)
  faults.push(...asked.faults)
  if (faults.length > 0 || 'message' in script) throw invalid(faults)
  const declared = await declaredOf(script, asked.scripts, options)
  if (declared.faults.length > 0) throw invalid(declared.faults)
  const named = options.timeout ?? script.timeout
  const timeout = { timeout: named ?? defaultTimeout, hasDefaultTimeout: named === null }
  const { field: _, ...toRun } = script
  const given = { ...options, params: declared.params }
  return { ...toRun, ...timeout, gates: asked.gates, retryOf: null, options: given }
}

/** The task that a request asks for. Throws `invalid` as `checkedRun`, or with what is wrong with the target. */
export async function newTask(
  context: Context,
  script: ScriptToRun | FieldFault,
  { target, targetField, options }: Asked,
): Promise<NewTask> {
  const checked = await checkedRun(context, script, options)
  return { ...checked, ...(await hostsOf(context, target, targetField)) }
}
