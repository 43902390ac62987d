/** The bytes that a Range asks for (RFC 9110 §14.2), first and last; null for all of them, as for several ranges at once. */
export function rangeOf(
  header: string | undefined,
  size: number,
): { first: number; last: number } | 'unsatisfiable' | null {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? []
  if (from === '' && to === '') return null
  const first = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const last = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (from !== '' && to !== '' && Number(to) < Number(from)) return null
  return first > last ? 'unsatisfiable' : { first, last }
}
