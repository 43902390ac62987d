import type { Arg } from '@oclif/core/interfaces'

interface Rules {
  readonly description: string
  readonly required?: true
  readonly multiple?: true
  readonly hidden?: true
  readonly options?: readonly string[]
}

/** As oclif's own, which loads more files, and would read an argument that is missing from stdin. */
const word = <T>(rules: Rules) =>
  ({ parse: async (text: string) => text, ignoreStdin: true, ...rules, input: [] }) as unknown as Arg<T>

export const needed = (description: string, rest: Partial<Rules> = {}) =>
  word<string>({ required: true, description, ...rest })

export const oneOrMore = (description: string) =>
  word<string[]>({ required: true, multiple: true, description })

export const optional = (description: string, rest: Partial<Rules> = {}) =>
  word<string | undefined>({ description, ...rest })

export const anyNumber = (description: string) => word<string[] | undefined>({ multiple: true, description })
