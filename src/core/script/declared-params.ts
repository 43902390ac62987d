import type { DeclaredParam } from './front-matter.ts'

type Params = ReadonlyMap<string, string>

/** What is given to a script beside what it declares. */
export interface DeclaredAndGiven {
  /** Required, and not given or empty. */
  readonly missing: readonly DeclaredParam[]
  /** Given, but not declared: mistyped, most likely. A script that declares none takes any. */
  readonly unknown: readonly string[]
  /** Declared as secret, but given where it is shown. */
  readonly exposed: readonly string[]
  /** Not given, so that their default is taken. */
  readonly defaulted: readonly DeclaredParam[]
}

export function compareParams(
  declared: readonly DeclaredParam[],
  params: Params,
  secretParams: Params,
): DeclaredAndGiven {
  const valueOf = (name: string) => params.get(name) ?? secretParams.get(name)
  const names = new Set(declared.map(({ name }) => name))
  const given = [...params.keys(), ...secretParams.keys()]
  return {
    missing: declared.filter(({ name, required }) => required && !valueOf(name)),
    unknown: names.size === 0 ? [] : given.filter((name) => !names.has(name)),
    exposed: declared.filter(({ name, secret }) => secret && params.has(name)).map(({ name }) => name),
    defaulted: declared.filter(({ name, default: value }) => value !== null && valueOf(name) === undefined),
  }
}
