/** A value that the browser keeps, or undefined; storage may be full, forbidden, or hold what someone else wrote. */
export function readKept(storage: Storage, key: string): unknown {
  try {
    const text = storage.getItem(key)
    return text === null ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}

/** Keeps a value, and forgets it where it is undefined. Without storage the page works, and forgets at a reload. */
export function keep(storage: Storage, key: string, value: unknown): void {
  try {
    if (value === undefined) storage.removeItem(key)
    else storage.setItem(key, JSON.stringify(value))
  } catch {
    // Nothing depends on it.
  }
}
