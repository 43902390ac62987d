import { type FieldFault, invalid } from '../../../core/errors.ts'
import type { Target } from '../../../core/protocol/http/targets.ts'
import type { ExecutionOptions } from '../../../core/protocol/http/tasks.ts'
import { jointFaults, paramFaults } from '../../../core/scripts/params.ts'
import { defaultTimeout } from '../../../core/tasks/plan.ts'
import type { Context } from '../context.ts'
import { contentFaults } from '../scripts.ts'
import { hostsOf } from '../targets.ts'
import { askedGates, declaredOf, type ScriptToRun } from './scripts-of-task.ts'
import type { NewTask } from './start-task.ts'

/** Rejects options without effect, because a user who relies on one would run on the whole fleet at once. */
export function batchFaults({
  strategy = 'PARALLEL',
  batchSize,
  pauseSeconds = 0,
}: ExecutionOptions): FieldFault[] {
  const faults: FieldFault[] = []
  if (batchSize !== undefined && strategy !== 'ROLLING')
    faults.push({
      field: 'batchSize',
      message: `is for ROLLING, not ${strategy}: add "strategy": "ROLLING"`,
    })
  if (pauseSeconds > 0 && strategy === 'PARALLEL')
    faults.push({
      field: 'pauseSeconds',
      message: 'is between batches, and PARALLEL has only one: use "strategy": "ROLLING" or "SEQUENTIAL"',
    })
  return faults
}

/** Target and options of a request; `targetField` is named in faults of the target. */
interface Asked {
  target: Target
  targetField: string
  options: ExecutionOptions
}

/** The task without its hosts. Rejects with `invalid`, listing all faults of script and options. */
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

/** The task of a request. Rejects with `invalid` like `checkedRun`, also for the target. */
export async function newTask(
  context: Context,
  script: ScriptToRun | FieldFault,
  { target, targetField, options }: Asked,
): Promise<NewTask> {
  const checked = await checkedRun(context, script, options)
  return { ...checked, ...(await hostsOf(context, target, targetField)) }
}
