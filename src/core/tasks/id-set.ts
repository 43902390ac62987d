/** Folds positive ids to text like `1-300,305`: a few bytes for most fleets, however large. */
export function foldIds(ids: readonly number[]): string {
  const sorted = [...new Set(ids)].sort((a, b) => a - b)
  const runs: { first: number; last: number }[] = []
  for (const id of sorted) {
    const run = runs.at(-1)
    if (run && id === run.last + 1) run.last = id
    else runs.push({ first: id, last: id })
  }
  return runs.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(',')
}

export function unfoldIds(folded: string): number[] {
  if (folded === '') return []
  return folded.split(',').flatMap((run) => {
    const [first = 0, last = first] = run.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, at) => first + at)
  })
}

export function hasId(folded: string, id: number): boolean {
  for (const run of folded.split(',')) {
    const dash = run.indexOf('-')
    const first = Number(dash < 0 ? run : run.slice(0, dash))
    if (id < first || run === '') return false
    if (id <= (dash < 0 ? first : Number(run.slice(dash + 1)))) return true
  }
  return false
}
