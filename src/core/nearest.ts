/** Damerau-Levenshtein distance of two short words, given up past `bound`. */
function distance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) > bound) return bound + 1
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let best = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (before[j - 2] ?? 0) + 1)
      current.push(best)
    }
    before = previous
    previous = current
  }
  return previous[b.length] ?? bound + 1
}

/** The name most like `word`, or undefined when none is near: what the person probably meant. Case is ignored. */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase()
  let bound = Math.max(2, Math.floor(wanted.length / 3))
  let found: string | undefined
  for (const name of names) {
    const steps = distance(wanted, name.toLowerCase(), bound)
    if (steps <= bound && (found === undefined || steps < bound)) {
      bound = steps
      found = name
    }
  }
  return found
}

/** What every message about an unknown name begins with; the command line knows it by this (contract §9: exit 5). */
const unknownPrefix = 'no such '

/** `no such host: web9 (did you mean web8?)`. */
export function unknownName(kind: string, name: string, names: Iterable<string>): string {
  const near = nearest(name, names)
  return `${unknownPrefix}${kind}: ${name}${near === undefined ? '' : ` (did you mean ${near}?)`}`
}

export function isUnknownName(message: string): boolean {
  return message.startsWith(unknownPrefix)
}
