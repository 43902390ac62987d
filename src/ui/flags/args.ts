import { string } from '@oclif/core/args'

// oclif would read an argument that is missing from stdin; ours are typed.

export const needed = (description: string) => string({ required: true, ignoreStdin: true, description })

export const oneOrMore = (description: string) =>
  string({ required: true, multiple: true, ignoreStdin: true, description })

export const optional = (description: string) => string({ ignoreStdin: true, description })
