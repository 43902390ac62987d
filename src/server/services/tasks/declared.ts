import type { FieldFault } from '../../../core/errors.ts'
import type { ExecutionOptions } from '../../../core/protocol/http/tasks.ts'
import { compareParams, declaredFaults, matcherOf } from '../../../core/script/declared-params.ts'
import { parseFrontMatter } from '../../../core/script/front-matter.ts'

/** What is given to a stored script beside what it declares, and the params that it gets: defaults filled in (contract-2 §9b). */
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
