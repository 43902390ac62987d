export function hasWildcard(text: string): boolean {
  return text.includes('*') || text.includes('?')
}

/**
 * Whether `text` matches `mask`, where `*` stands for any text and `?` for one character. Never worse than
 * mask × text: a regular expression with many stars would let one selector stop the server.
 */
export function matchesWildcard(mask: string, text: string): boolean {
  let m = 0
  let t = 0
  let star = -1
  let resume = 0
  while (t < text.length) {
    if (mask[m] === '*') {
      star = m++
      resume = t
    } else if (m < mask.length && (mask[m] === '?' || mask[m] === text[t])) {
      m++
      t++
    } else if (star >= 0) {
      m = star + 1
      t = ++resume
    } else return false
  }
  while (mask[m] === '*') m++
  return m === mask.length
}
