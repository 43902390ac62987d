import type { FieldFault } from '../errors.ts'
import { nearest } from '../text/nearest.ts'
import type { DeclaredParam } from './front-matter.ts'

/** Declared params that a fault names, and unknown ones that are compared with all declared ones. */
const mostNamed = 10

type Params = ReadonlyMap<string, string>
type Fits = (pattern: string, value: string) => boolean

/** What is given to a script beside what it declares. */
export interface DeclaredAndGiven {
  /** Required, and not given or empty. */
  readonly missing: readonly DeclaredParam[]
  /** Given, but not declared: mistyped, most likely. A script that declares none takes any. */
  readonly unknown: readonly string[]
  /** Declared as secret, but given where it is shown. */
  readonly exposed: readonly string[]
  /** Given, and not as their pattern says. */
  readonly unfit: readonly DeclaredParam[]
  /** Not given, so that their default is taken. */
  readonly defaulted: readonly DeclaredParam[]
}

const hasPattern = (declared: readonly DeclaredParam[]) => declared.some(({ pattern }) => pattern !== null)

/**
 * How values are matched; the engine is loaded where a param has a pattern only. A text that an older server stored may
 * have patterns that would be refused now: it runs as it did there, with none of them enforced.
 */
export async function matcherOf(declared: readonly DeclaredParam[]): Promise<Fits> {
  if (!hasPattern(declared)) return () => true
  const { fitsPattern, patternFaults } = await import('./param-pattern.ts')
  return patternFaults(declared).length === 0 ? fitsPattern : () => true
}

/** What is wrong with the patterns that are declared, each as a sentence. */
export async function declaredPatternFaults(declared: readonly DeclaredParam[]): Promise<string[]> {
  return hasPattern(declared) ? (await import('./param-pattern.ts')).patternFaults(declared) : []
}

export function compareParams(
  declared: readonly DeclaredParam[],
  params: Params,
  secretParams: Params,
  fits: Fits,
): DeclaredAndGiven {
  const valueOf = (name: string) => params.get(name) ?? secretParams.get(name)
  const names = new Set(declared.map(({ name }) => name))
  const given = [...params.keys(), ...secretParams.keys()]
  const isMissing = ({ name, required }: DeclaredParam) => required && !valueOf(name)
  const isUnfit = (param: DeclaredParam) => {
    const value = valueOf(param.name)
    return param.pattern !== null && value !== undefined && !isMissing(param) && !fits(param.pattern, value)
  }
  return {
    missing: declared.filter(isMissing),
    unknown: names.size === 0 ? [] : given.filter((name) => !names.has(name)),
    exposed: declared.filter(({ name, secret }) => secret && params.has(name)).map(({ name }) => name),
    unfit: declared.filter(isUnfit),
    defaulted: declared.filter(({ name, default: value }) => value !== null && valueOf(name) === undefined),
  }
}

/** The same as faults of a request's body; values are never shown. */
export function declaredFaults(
  script: string,
  declared: readonly DeclaredParam[],
  secretParams: Params,
  { missing, unknown, exposed, unfit }: DeclaredAndGiven,
): FieldFault[] {
  const names = declared.map(({ name }) => name)
  const fieldOf = (name: string) => `${secretParams.has(name) ? 'secretParams' : 'params'}.${name}`
  return [
    ...missing.map(({ name, secret, description }) => ({
      field: `${secret ? 'secretParams' : 'params'}.${name}`,
      message: `is required by ${script}${description === '' ? '' : ` (${description})`}`,
    })),
    ...unknown.map((name, at) => {
      const message = `is not a param of ${script}`
      if (at >= mostNamed) return { field: fieldOf(name), message }
      const near = nearest(name, names)
      const declares = [...names.slice(0, mostNamed), ...(names.length > mostNamed ? ['…'] : [])].join(', ')
      const meant = near === undefined ? `it declares ${declares}` : `did you mean ${near}?`
      return { field: fieldOf(name), message: `${message} (${meant})` }
    }),
    ...exposed.map((name) => ({ field: `params.${name}`, message: 'is secret: give it in secretParams' })),
    ...unfit.map(({ name, pattern }) => ({
      field: fieldOf(name),
      message: `does not match its pattern, ${pattern}`,
    })),
  ]
}
