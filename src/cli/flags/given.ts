import type { FlagInput } from '@oclif/core/interfaces'

export type FlagsOf<T> = T extends FlagInput<infer F> ? Readonly<F> : never

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

/** Drops undefined fields, so that requests contain only what the user typed. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>
}

export function ifGiven<T, R>(value: T | undefined, use: (value: T) => R): R | undefined {
  return value === undefined ? undefined : use(value)
}
