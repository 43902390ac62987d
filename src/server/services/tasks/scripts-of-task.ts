import type { FieldFault } from '../../../core/errors.ts'
import type { ExecutionOptions, GateOption, TaskCreate } from '../../../core/protocol/http/tasks.ts'
import { compareParams, declaredFaults, patternsOf } from '../../../core/scripts/declared-params.ts'
import { parseFrontMatter } from '../../../core/scripts/front-matter.ts'
import { firstLine, type ScriptType } from '../../../core/scripts/script-form.ts'
import { defaultInterval } from '../../../core/tasks/gates.ts'
import { defaultTimeout } from '../../../core/tasks/plan.ts'
import { unknownName } from '../../../core/text/nearest.ts'
import type { GateScript, TaskGates } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'
import { contentFaults } from '../scripts.ts'

/** Older servers run this instead of the script, because they would ignore its gates. */
export const forOlderServers = `echo "this server is too old to verify or roll back what it runs: upgrade it" >&2
exit 126`

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
export async function declaredOf(
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

export async function askedGates(
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
