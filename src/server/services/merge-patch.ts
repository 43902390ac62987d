/** Merge patch (RFC 7396) of one field: undefined keeps it, null resets it to `absent`, else it is replaced. */
export function patched<T>(change: T | null | undefined, current: T, absent: T): T {
  if (change === undefined) return current
  return change === null ? absent : change
}

/** Merge patch (RFC 7396) of an object of strings: objects merge, a null removes its key, null removes all. */
export function patchedMap(
  change: Record<string, string | null> | null | undefined,
  current: Record<string, string>,
): Record<string, string> {
  if (change === undefined) return current
  const next = { ...(change === null ? {} : current) }
  for (const [key, value] of Object.entries(change ?? {}))
    if (value === null) delete next[key]
    else next[key] = value
  return next
}
