import { compareNatural } from '../../core/selector/natural-order.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { sanitize } from '../text/sanitize.ts'

export interface Group {
  readonly shown: string
  readonly hostnames: readonly string[]
}

/** Groups hosts by their output, largest group first, as `clush -b` does. */
export function groupsOf(outputs: Iterable<readonly [shown: string, hostnames: readonly string[]]>): Group[] {
  const groups = new Map<string, string[]>()
  for (const [shown, hostnames] of outputs) {
    const equal = groups.get(shown)
    if (equal === undefined) groups.set(shown, [...hostnames])
    else equal.push(...hostnames)
  }
  return [...groups]
    .map(([shown, hostnames]) => ({ shown, hostnames: hostnames.sort(compareNatural) }))
    .sort(
      (a, b) =>
        b.hostnames.length - a.hostnames.length || compareNatural(a.hostnames[0] ?? '', b.hostnames[0] ?? ''),
    )
}

/** `web[1-3] (3)`. */
export function titleOf({ hostnames }: Pick<Group, 'hostnames'>): string {
  const count = hostnames.length > 1 ? ` (${hostnames.length})` : ''
  return sanitize(foldNodeset(hostnames)) + count
}

/** Text for comparison: without line end and colour differences, which people do not see. */
export const comparedText = (text: string): string => sanitize(text.replace(/\r\n?/g, '\n'))
