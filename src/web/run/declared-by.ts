import type { Script, ScriptSummary } from '../../core/protocol/http/scripts.ts'

/** What several scripts declare, the first one's word where two do. */
export function declaredBy(scripts: readonly (ScriptSummary | undefined)[]): Script['params'] {
  const params = scripts.flatMap((script) => script?.params ?? [])
  return params.filter(({ name }, at) => params.findIndex((other) => other.name === name) === at)
}
