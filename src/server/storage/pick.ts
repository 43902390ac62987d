/** Only the named fields of a record, so that a new field stays hidden until it is listed. */
export function pick<T extends object, K extends keyof T>(record: T, ...names: K[]): Pick<T, K> {
  const picked = {} as Pick<T, K>
  for (const name of names) picked[name] = record[name]
  return picked
}
