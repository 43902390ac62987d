import type { FlagInput } from '@oclif/core/interfaces'

/** What a command line gives for these flags. */
export type FlagsOf<T> = T extends FlagInput<infer F> ? Readonly<F> : never

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

/** The fields that have a value: what nobody typed is left out of a call. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>
}

/** What a value that was given comes to. */
export function ifGiven<T, R>(value: T | undefined, use: (value: T) => R): R | undefined {
  return value === undefined ? undefined : use(value)
}
