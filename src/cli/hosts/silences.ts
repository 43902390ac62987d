/** Hosts of one rack fall silent together, each heard last at a second of its own. */
const silences =
  /\b(no heartbeat for|no link for|NO LINK for|was last heard|was stopped) (\d+) (s|min|h|days)\b/g

const unitSeconds: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3600, days: 86_400 }

const secondsOf = ([, , count = '', unit = '']: readonly string[]) => Number(count) * (unitSeconds[unit] ?? 1)

export const withoutSpans = (reason: string): string => reason.replace(silences, '$1')

/** What several have in common, with how long they have been silent from the shortest to the longest. */
export function sharedReason(reasons: readonly string[]): string {
  const [first = ''] = reasons
  const silencesOf = reasons.map((reason) => [...reason.matchAll(silences)])
  let at = 0
  return first.replace(silences, (one) => {
    const told = silencesOf
      .map((each) => each[at])
      .filter((each) => each !== undefined)
      .sort((a, b) => secondsOf(a) - secondsOf(b))
    at++
    const [, words = '', least = '', unit = ''] = told[0] ?? []
    const [, , most = '', largest = ''] = told.at(-1) ?? []
    if (least === most && unit === largest) return one
    return `${words} ${least}${unit === largest ? '' : ` ${unit}`} to ${most} ${largest}`
  })
}
