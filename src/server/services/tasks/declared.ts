import type { FieldFault } from '../../../core/errors.ts'
import type { ExecutionOptions } from '../../../core/protocol/http/tasks.ts'
import { compareParams, declaredFaults, patternsOf } from '../../../core/scripts/declared-params.ts'
import { parseFrontMatter } from '../../../core/scripts/front-matter.ts'
import type { ScriptToRun } from './script-to-run.ts'

type Declaring = Pick<ScriptToRun, 'scriptId' | 'scriptName' | 'content'>

/**
 * What is given to stored scripts beside what they declare, and the params that all of them get: defaults filled in, of a name
 * that several declare the first one's (contract §4, §15). A param that none of them declares is unknown.
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
 * What is wrong with the values that a retry is given anew. The params are those that the task ran with, which nobody can
 * change, and which an older server may have taken though they are not declared: they are not judged again.
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
