/** Whether a word of a command line is so like another that it may be taken for it: of a short one a slip or two make any other. */
export function isLike(typed: string, meant: string): boolean {
  const a = typed.toLowerCase()
  const b = meant.toLowerCase()
  if (a[0] === b[0]) return Math.min(a.length, b.length) > 2 || Math.abs(a.length - b.length) < 2
  // The first letter is the one that is seldom missed: then the rest has to agree, or be exchanged with it.
  return a.slice(1) === b.slice(1) || (a[0] === b[1] && a[1] === b[0]) || a === b.slice(1) || b === a.slice(1)
}
