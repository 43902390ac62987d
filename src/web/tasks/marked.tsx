/** Marks that are drawn in one text: past that they tell no more. */
const mostMarks = 1_000

/** A text in which what was searched for is marked; case does not matter. */
export function Marked({ text, search }: { text: string; search: string }) {
  const wanted = search.toLowerCase()
  // Where lower case has another length, places would not be the same.
  const lower = text.toLowerCase()
  if (wanted === '' || lower.length !== text.length) return text
  const parts = []
  let from = 0
  for (let at = lower.indexOf(wanted); at !== -1 && parts.length < 2 * mostMarks; ) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>)
    from = at + wanted.length
    at = lower.indexOf(wanted, from)
  }
  return [...parts, text.slice(from)]
}
