const anyText = '*'.charCodeAt(0)
const anyCharacter = '?'.charCodeAt(0)

export function hasWildcard(text: string): boolean {
  return text.includes('*') || text.includes('?')
}

/**
 * Whether `text` matches `mask`, where `*` stands for any text and `?` for one character. Never worse than
 * mask × text: a regular expression with many stars would let one selector stop the server. `spend` hears of the
 * characters compared, for many such masks over many texts would stop it too.
 */
export function matchesWildcard(mask: string, text: string, spend: (characters: number) => void): boolean {
  let steps = 0
  let m = 0
  let t = 0
  let star = -1
  let resume = 0
  while (t < text.length) {
    steps++
    const sign = mask.charCodeAt(m)
    if (sign === anyText) {
      star = m++
      resume = t
    } else if (sign === anyCharacter || sign === text.charCodeAt(t)) {
      m++
      t++
    } else if (star >= 0) {
      m = star + 1
      t = ++resume
    } else break
  }
  spend(steps)
  if (t < text.length) return false
  while (mask.charCodeAt(m) === anyText) m++
  return m === mask.length
}
