import { custom, type integer as oclifInteger } from '@oclif/core/flags'
import type { Arg, ArgInput, FlagInput } from '@oclif/core/interfaces'
import { nearest } from '../../core/text/nearest.ts'
import { Misuse } from '../command/usage.ts'

/** Matches a value ignoring case: `viewer` is VIEWER. `option` precedes the value in the message: `--role=`. */
function oneOf(values: readonly string[], text: string, option: string): string {
  const found = values.find((value) => value.toLowerCase() === text.toLowerCase())
  if (found !== undefined) return found
  const near = nearest(text, values)
  const meant = near === undefined ? '' : ` (did you mean ${near}?)`
  throw new Misuse(`${option}${text} is not one of: ${values.join(', ')}${meant}`)
}

export function mapEach<F extends object>(
  declared: F,
  change: (each: F[keyof F], name: string) => unknown,
): F {
  return Object.fromEntries(Object.entries(declared).map(([name, each]) => [name, change(each, name)])) as F
}

/**
 * Makes flags or arguments with `options` ignore case; `before` precedes a value in messages. Removes their `options`, because
 * oclif compares values before it calls `parse`. Help and manifest show the flags as declared.
 */
export function anyCase<F extends FlagInput | ArgInput>(
  declared: F,
  before = (name: string) => `--${name}=`,
): F {
  return mapEach(declared, (each, name) => {
    if (each === undefined || !('options' in each) || each.options === undefined) return each
    const { options: values, ...rest } = each
    return { ...rest, parse: async (text: string) => oneOf(values, text, before(name)) }
  })
}

type Range = { readonly min?: number; readonly max?: number }

/** Errors: `Misuse` with the option or argument and its range. */
export function wholeNumber(what: string, text: string, { min, max }: Range): number {
  const number = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
  const bound = number < (min ?? number) ? ` from ${min}` : number > (max ?? number) ? ` up to ${max}` : ''
  if (!Number.isNaN(number) && bound === '') return number
  throw new Misuse(`${what} takes a whole number${bound}, not ${text || 'nothing'}`)
}

export const integer: typeof oclifInteger = custom<number, Range>({
  parse: async (text, _, options) => wholeNumber(`--${options.name}`, text, options),
})

interface Rules {
  readonly description: string
  readonly required?: true
  readonly multiple?: true
  readonly hidden?: true
  readonly options?: readonly string[]
}

/** Like oclif's `Args.string`, which would read a missing argument from stdin. Here, because every command loads this file. */
const word = <T>(rules: Rules) =>
  ({ parse: async (text: string) => text, ignoreStdin: true, ...rules, input: [] }) as unknown as Arg<T>

export const needed = (description: string, rest: Partial<Rules> = {}) =>
  word<string>({ required: true, description, ...rest })

export const oneOrMore = (description: string) =>
  word<string[]>({ required: true, multiple: true, description })

export const optional = (description: string, rest: Partial<Rules> = {}) =>
  word<string | undefined>({ description, ...rest })

export const anyNumber = (description: string) => word<string[] | undefined>({ multiple: true, description })

/** Removes the rules that `checkTogether` enforces, because oclif words their errors differently. */
export function alone<F extends FlagInput>(flags: F): F {
  return mapEach(flags, (flag) => ({
    ...flag,
    required: undefined,
    exclusive: undefined,
    dependsOn: undefined,
  }))
}

interface ParsedFlags {
  readonly flags: Readonly<Record<string, unknown>>
  readonly metadata: { readonly flags: Readonly<Record<string, { setFromDefault?: boolean } | undefined>> }
}

/** Errors: `Misuse` with every missing flag, every unmet dependency and every pair that excludes each other. */
export function checkTogether(flags: FlagInput, { flags: values, metadata }: ParsedFlags): void {
  const isGiven = (name: string) =>
    values[name] !== undefined && metadata.flags[name]?.setFromDefault !== true
  const faults = new Map<string, string>()
  for (const [name, { required, exclusive = [], dependsOn = [] }] of Object.entries(flags)) {
    if (required === true && values[name] === undefined) faults.set(name, `--${name} is missing`)
    for (const other of dependsOn)
      if (isGiven(name) && values[other] === undefined)
        faults.set(`${name} ${other}`, `--${name} needs --${other}`)
    for (const other of exclusive) {
      if (typeof other !== 'string' || !isGiven(name) || !isGiven(other)) continue
      // Report each pair once, even if both exclude each other.
      const pair = [name, other].sort().join(' ')
      if (!faults.has(pair)) faults.set(pair, `--${other} and --${name} exclude each other`)
    }
  }
  if (faults.size > 0) throw new Misuse([...faults.values()].join('; '))
}

/** An option that may be repeated, with one value each. */
export const repeated = { multiple: true, multipleNonGreedy: true } as const

/** Like `repeated`, or with several values in a word. */
export const listed = { ...repeated, delimiter: ',' } as const

export type FlagsOf<T> = T extends FlagInput<infer F> ? Readonly<F> : never

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

/** Drops undefined fields, so that requests contain only what the user typed. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>
}

export function ifGiven<T, R>(value: T | undefined, use: (value: T) => R): R | undefined {
  return value === undefined ? undefined : use(value)
}
