import type { FieldFault } from '../../../core/errors.ts'
import type { ExecutionOptions } from '../../../core/protocol/http/tasks.ts'
import { compareParams, declaredFaults, matcherOf } from '../../../core/script/declared-params.ts'
import { parseFrontMatter } from '../../../core/script/front-matter.ts'

/** What is given to a stored script beside what it declares, and the params that it gets: defaults filled in (contract §4). */
export async function declaredOf(
  script: string,
  content: string,
  options: ExecutionOptions,
): Promise<{ faults: FieldFault[]; params: Record<string, string> }> {
  const { params: declared } = parseFrontMatter(content).matter
  const { params = {}, secretParams = {} } = options
  const secrets = new Map(Object.entries(secretParams))
  const found = compareParams(declared, new Map(Object.entries(params)), secrets, await matcherOf(declared))
  const defaults = found.defaulted.map(({ name, default: value }) => [name, value ?? ''])
  return {
    faults: declaredFaults(script, declared, secrets, found),
    params: { ...params, ...Object.fromEntries(defaults) },
  }
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
  const found = compareParams(given, new Map(), secrets, await matcherOf(given))
  return declaredFaults(script, given, secrets, { ...found, unknown: [] })
}
