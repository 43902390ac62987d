/** Most pairs of characters that one search compares: a few hundredths of a second for any names. */
const maxPairs = 2_000_000

interface Budget {
  pairs: number
}

/** Damerau-Levenshtein distance of two words; `bound` + 1 if it is larger or the budget is spent. */
function distance(a: string, b: string, bound: number, budget: Budget): number {
  if (Math.abs(a.length - b.length) > bound) return bound + 1
  let before = new Uint32Array(b.length + 1)
  let previous = Uint32Array.from({ length: b.length + 1 }, (_, index) => index)
  let current = new Uint32Array(b.length + 1)
  for (let i = 1; i <= a.length; i++) {
    budget.pairs -= b.length
    if (budget.pairs < 0) return bound + 1
    const code = a.charCodeAt(i - 1)
    let least = (current[0] = i)
    for (let j = 1; j <= b.length; j++) {
      const cost = code === b.charCodeAt(j - 1) ? 0 : 1
      let best = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + cost)
      const swapped =
        i > 1 && j > 1 && code === b.charCodeAt(j - 2) && a.charCodeAt(i - 2) === b.charCodeAt(j - 1)
      if (swapped) best = Math.min(best, (before[j - 2] ?? 0) + 1)
      current[j] = best
      if (best < least) least = best
    }
    if (least > bound) return bound + 1
    const free = before
    before = previous
    previous = current
    current = free
  }
  return previous[b.length] ?? bound + 1
}

/** The name most like `word`, ignoring case; undefined if none is near. Of many names, tries the first ones. */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase()
  const budget = { pairs: maxPairs }
  let bound = Math.max(2, Math.floor(wanted.length / 3))
  let found: string | undefined
  for (const name of names) {
    const steps = distance(wanted, name.toLowerCase(), bound, budget)
    if (steps <= bound && (found === undefined || steps < bound)) {
      bound = steps
      found = name
    }
    if (budget.pairs < 0) break
  }
  return found
}

/** Prefixes by which the command line recognises unknown names and empty targets (contract §8: exit 5). */
const unknownPrefix = 'no such '
const unknownTagPrefix = 'no host has the tag '
export const matchesNone = 'matches no host'

function meant(name: string, names: Iterable<string>): string {
  const near = nearest(name, names)
  return near === undefined ? '' : ` (did you mean ${near}?)`
}

/** `no such host: web9 (did you mean web8?)`. */
export function unknownName(kind: string, name: string, names: Iterable<string>): string {
  return `${unknownPrefix}${kind}: ${name}${meant(name, names)}`
}

/** `no host has the tag env=prd (did you mean env=prod?)`, of tags as they are typed after `-t`. */
export function unknownTag(tag: string, tags: Iterable<string>): string {
  return unknownTagPrefix + tag + meant(tag, tags)
}

export function isUnknownName(message: string): boolean {
  return [unknownPrefix, unknownTagPrefix, matchesNone].some((prefix) => message.startsWith(prefix))
}
