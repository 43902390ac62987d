import { type FieldFault, invalid } from '../../../core/errors.ts'
import type { ExecutionOptions, GateOption, TaskCreate } from '../../../core/protocol/http/tasks.ts'
import { compareParams, declaredFaults, patternsOf } from '../../../core/scripts/declared-params.ts'
import { parseFrontMatter } from '../../../core/scripts/front-matter.ts'
import { jointFaults, paramFaults } from '../../../core/scripts/params.ts'
import { firstLine, type ScriptType } from '../../../core/scripts/script-form.ts'
import { defaultInterval } from '../../../core/tasks/gates.ts'
import { defaultTimeout } from '../../../core/tasks/plan.ts'
import { unknownName } from '../../../core/text/nearest.ts'
import type { GateScript, TaskGates } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'
import { contentFaults } from '../scripts.ts'
import type { NewTask } from './start-task.ts'

export interface ScriptToRun {
  /** Field of the request in which faults of the text are reported. */
  field: string
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  type: ScriptType
  content: string
  timeout: number | null
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

export async function storedScript(
  { store }: Pick<Context, 'store'>,
  scriptId: number,
  field: string,
): Promise<ScriptToRun | FieldFault> {
  const script = await store.get('scripts', scriptId)
  if (!script) return { field, message: unknownName('script', String(scriptId), []) }
  const { version, name, type, content, timeout } = script
  return { field, scriptId, scriptVersion: version, scriptName: name, type, content, timeout }
}

export function adHocScript(
  { type = 'BASH', content, timeout, name }: NonNullable<TaskCreate['script']>,
  field: string,
): ScriptToRun {
  return {
    field: `${field}.content`,
    scriptId: null,
    scriptVersion: null,
    scriptName: name ?? null,
    type,
    content,
    timeout: timeout ?? null,
  }
}

type Declaring = Pick<ScriptToRun, 'scriptId' | 'scriptName' | 'content'>

/**
 * Checks params against the declarations of the stored scripts, and fills in defaults. If several scripts declare a
 * name, the first default counts (contract §4, §15). A param that no script declares is unknown.
 */
async function declaredOf(
  script: Declaring,
  gates: readonly Declaring[],
  options: ExecutionOptions,
): Promise<{ faults: FieldFault[]; params: Record<string, string> }> {
  const { params = {}, secretParams = {} } = options
  const [given, secrets] = [new Map(Object.entries(params)), new Map(Object.entries(secretParams))]
  const stored = [script, ...gates]
    .filter(({ scriptId }) => scriptId !== null)
    .map((each) => ({ ...each, declared: parseFrontMatter(each.content).matter.params }))
  const names = new Set(stored.flatMap(({ declared }) => declared.map(({ name }) => name)))
  const faults: FieldFault[] = []
  let defaults: Record<string, string> = {}
  for (const [at, { scriptId, scriptName, declared }] of stored.entries()) {
    const found = compareParams(declared, given, secrets, (await patternsOf(declared)).fits)
    const isOfTask = at === 0 && scriptId === script.scriptId
    const unknown = isOfTask ? found.unknown.filter((name) => !names.has(name)) : []
    faults.push(...declaredFaults(scriptName ?? 'the script', declared, secrets, { ...found, unknown }))
    const its = found.defaulted.map(({ name, default: value }) => [name, value ?? ''])
    defaults = { ...Object.fromEntries(its), ...defaults }
  }
  return { faults, params: { ...params, ...defaults } }
}

/**
 * Checks the secret values of a retry. Its other params are not checked again: they cannot change, and an older
 * server may have accepted undeclared ones.
 */
export async function secretFaults(
  script: string,
  content: string,
  secretParams: Readonly<Record<string, string>>,
): Promise<FieldFault[]> {
  const given = parseFrontMatter(content).matter.params.filter(({ name }) =>
    Object.hasOwn(secretParams, name),
  )
  const secrets = new Map(Object.entries(secretParams))
  const found = compareParams(given, new Map(), secrets, (await patternsOf(given)).fits)
  return declaredFaults(script, given, secrets, { ...found, unknown: [] })
}

async function askedGates(
  context: Context,
  { verify, rollback }: ExecutionOptions,
): Promise<{ gates: TaskGates | undefined; scripts: ScriptToRun[]; faults: FieldFault[] }> {
  const [verifying, undoing] = [
    verify && (await scriptOf(context, verify, 'verify')),
    rollback && (await scriptOf(context, rollback, 'rollback')),
  ]
  const scripts: ScriptToRun[] = []
  const faults: FieldFault[] = []
  for (const found of [verifying, undoing])
    if (found && 'message' in found) faults.push(found)
    else if (found) {
      scripts.push(found)
      faults.push(...contentFaults(found.type, found.content, found.field))
    }
  if (faults.length > 0 || scripts.length === 0) return { gates: undefined, scripts, faults }
  const { retries = 0, intervalSeconds = defaultInterval } = verify ?? {}
  const ofVerify = verifying && 'content' in verifying ? gateOf(verifying, verify?.timeout) : null
  const gates = {
    script: null,
    verify: ofVerify && { ...ofVerify, retries, intervalSeconds },
    rollback: undoing && 'content' in undoing ? gateOf(undoing, undefined) : null,
  }
  return { gates, scripts, faults }
}

async function scriptOf(
  context: Context,
  { scriptId, script }: GateOption,
  field: 'verify' | 'rollback',
): Promise<ScriptToRun | FieldFault> {
  if ((scriptId === undefined) === (script === undefined))
    return { field, message: 'give exactly one of scriptId and script' }
  if (script !== undefined) return adHocScript(script, `${field}.script`)
  return storedScript(context, scriptId ?? 0, `${field}.scriptId`)
}

function gateOf(script: ScriptToRun, timeout: number | undefined): GateScript {
  const { scriptId, scriptVersion, scriptName, type, content } = script
  const named = timeout ?? script.timeout
  return {
    scriptId,
    scriptVersion,
    scriptName,
    firstLine: scriptName === null ? firstLine(content) : null,
    type,
    content,
    timeout: named ?? defaultTimeout,
    ...(named === null && { hasDefaultTimeout: true }),
  }
}
