import type { Candidate } from './candidates.ts'

/**
 * At most `most` candidates. Where there are more, their beginnings stand for them, as long as can be: were some left out, a shell would
 * take what the rest have in common for what all have in common, and type it.
 */
export function narrow(candidates: readonly Candidate[], most: number): readonly Candidate[] {
  if (candidates.length <= most) return candidates
  let narrowed: Candidate[] = []
  for (let length = 1; ; length++) {
    const stems = new Map<string, Candidate>()
    for (const candidate of candidates) {
      const stem = candidate.shown.slice(0, length).toLowerCase()
      if (stems.has(stem) || stems.size > most) continue
      const isWhole = candidate.shown.length <= length
      const lead = candidate.word.length - candidate.shown.length
      const word = candidate.word.slice(0, lead + length)
      stems.set(
        stem,
        isWhole ? candidate : { word, shown: candidate.shown.slice(0, length), about: '', isOpen: true },
      )
    }
    if (stems.size > most || candidates.every(({ shown }) => shown.length < length)) return narrowed
    narrowed = [...stems.values()]
  }
}
