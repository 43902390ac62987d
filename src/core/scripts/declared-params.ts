import type { RE2JS } from 're2js'
import type { FieldFault } from '../errors.ts'
import { nearest } from '../text/nearest.ts'
import type { DeclaredParam } from './front-matter.ts'

/** Most declared params that a fault lists, and most unknown ones that are compared with all declared ones. */
const mostNamed = 10

/** Limits of patterns, of all their instructions, and of a value: match time grows with each. */
const mostPatterns = 20
const mostInstructions = 1_000
const longestValue = 256
/** Most instructions of a pattern by estimate, checked before it is compiled: 190,000 take 0.8 s and 85 MB. */
const mostEstimated = 20_000

type Params = ReadonlyMap<string, string>
type Fits = (pattern: string, value: string) => boolean

/** Differences between the params given to a script and those that it declares. */
export interface DeclaredAndGiven {
  /** Required, but not given or empty. */
  readonly missing: readonly DeclaredParam[]
  /** Given, but not declared: probably mistyped. A script that declares none accepts any. */
  readonly unknown: readonly string[]
  /** Declared as secret, but given in `params`, which are shown. */
  readonly exposed: readonly string[]
  /** Given, but not matching their pattern. */
  readonly unfit: readonly DeclaredParam[]
  /** Not given, so their default applies. */
  readonly defaulted: readonly DeclaredParam[]
}

type Patterned = Pick<DeclaredParam, 'name' | 'pattern' | 'default'>

/** Whether (?i) applies to wide ranges: compiling one takes 20 ms, because each of its characters is folded. */
const foldsUnicode = (pattern: string) =>
  /\(\?[a-zA-Z-]*i/.test(pattern) && /[^\0-\x7f]|\\[pP]|\\x\{/.test(pattern)

/** Upper estimate of the instructions that repeated groups expand to; groups may be nested. */
const estimatedSize = (pattern: string) =>
  [...pattern.matchAll(/(?<=[)}?*+])\{(\d+)(?:,(\d*))?\}/g)].reduce(
    (size, [, least, most]) => size * Math.max(1, Number(least), Number(most ?? 0)),
    pattern.length,
  )

function compiled(engine: typeof RE2JS, pattern: string): RE2JS | string {
  if (foldsUnicode(pattern))
    return 'has (?i) with \\p, \\P, \\x{…} or letters beyond ASCII: use only one of the two'
  if (estimatedSize(pattern) > mostEstimated) return 'is too large: use smaller counts in {…}'
  try {
    return engine.compile(pattern)
  } catch (error) {
    return `is not valid in RE2: ${error instanceof Error ? error.message : String(error)}`
  }
}

/**
 * Compiles the patterns of a script; each fault is a sentence. With a fault, `fits` accepts any value, so that a text
 * stored by an older server runs as before. Loads the engine only if there is a pattern.
 */
export async function patternsOf(declared: readonly Patterned[]): Promise<{ fits: Fits; faults: string[] }> {
  const fitsAny = (faults: string[]) => ({ fits: () => true, faults })
  const patterned = declared.filter(
    (param): param is Patterned & { pattern: string } => param.pattern !== null,
  )
  if (patterned.length === 0) return fitsAny([])
  if (patterned.length > mostPatterns)
    return fitsAny([`a script has at most ${mostPatterns} patterns, not ${patterned.length}`])
  const { RE2JS: engine } = await import('re2js')
  const programs = new Map<string, RE2JS>()
  const fits: Fits = (pattern, value) =>
    value.length <= longestValue && programs.get(pattern)?.matches(value) === true
  const faults: string[] = []
  let room = mostInstructions
  for (const { name, pattern, default: value } of patterned) {
    const program = compiled(engine, pattern)
    if (typeof program === 'string') faults.push(`the pattern of ${name} ${program}`)
    else {
      room -= program.programSize()
      if (room < 0)
        return fitsAny([
          ...faults,
          `the patterns up to that of ${name} are too large: use smaller counts in {…}`,
        ])
      programs.set(pattern, program)
      if (value !== null && !fits(pattern, value))
        faults.push(`the pattern of ${name} does not match the default`)
    }
  }
  return faults.length === 0 ? { fits, faults } : fitsAny(faults)
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

/** The differences as faults of a request body; values are never shown. */
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
