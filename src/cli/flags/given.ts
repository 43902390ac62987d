import type { FlagInput } from '@oclif/core/interfaces'

export type FlagsOf<T> = T extends FlagInput<infer F> ? Readonly<F> : never

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

/** The fields that have a value: what nobody typed is left out of a call. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>
}

export function ifGiven<T, R>(value: T | undefined, use: (value: T) => R): R | undefined {
  return value === undefined ? undefined : use(value)
}
