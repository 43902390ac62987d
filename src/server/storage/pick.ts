/** The fields of a record that are named: what is shown is listed, so that a new field stays unseen until it is too. */
export function pick<T extends object, K extends keyof T>(record: T, ...names: K[]): Pick<T, K> {
  const picked = {} as Pick<T, K>
  for (const name of names) picked[name] = record[name]
  return picked
}
