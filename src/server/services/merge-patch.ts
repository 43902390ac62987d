/** RFC 7396 for one field: absent keeps, null resets to what an absent field means, else replaces. */
export function patched<T>(change: T | null | undefined, present: T, absent: T): T {
  if (change === undefined) return present
  return change === null ? absent : change
}

/** RFC 7396 for an object of strings: objects merge, a null removes its key, null removes all. */
export function patchedMap(
  change: Record<string, string | null> | null | undefined,
  present: Record<string, string>,
): Record<string, string> {
  if (change === undefined) return present
  const next = { ...(change === null ? {} : present) }
  for (const [key, value] of Object.entries(change ?? {}))
    if (value === null) delete next[key]
    else next[key] = value
  return next
}
