/** What can be limited, as the API and an agent's HELLO name it. */
export const limitNames = ['memoryMB', 'processes', 'cpuPercent'] as const
export type LimitName = (typeof limitNames)[number]
/**
 * What one execution may take on its host. Where the host can't enforce one that is asked for, nothing runs there (exit
 * 126). `memoryMB` in MiB, swap included; `cpuPercent` of one core: 200 is two of them.
 */
export type Limits = { [Name in LimitName]?: number }

/** As people write them: `--limit memory=512M`. */
export const limitWords: Record<LimitName, string> = {
  memoryMB: 'memory',
  processes: 'processes',
  cpuPercent: 'cpu',
}

const units: Record<LimitName, string> = { memoryMB: ' MB', processes: '', cpuPercent: ' %' }

/** One limit with its unit, such as `64 MB`. */
export function limitSize(name: LimitName, size: number): string {
  return `${size}${units[name]}`
}

/** `memory 512 MB, processes 100`; empty without limits. */
export function showLimits(limits: Limits): string {
  return limitNames
    .flatMap((name) => {
      const size = limits[name]
      return size === undefined ? [] : [`${limitWords[name]} ${limitSize(name, size)}`]
    })
    .join(', ')
}

/** Of a task's limits and those that a host sets for all of them: the lower of both wins. */
export function lowerLimits(one: Limits, other: Limits): Limits {
  const lower: Limits = {}
  for (const name of limitNames) {
    const sizes = [one[name], other[name]].filter((size) => size !== undefined)
    if (sizes.length > 0) lower[name] = Math.min(...sizes)
  }
  return lower
}

/** The limits among those asked for that are not in the list of those that can be enforced. */
export function notEnforced(limits: Limits, enforced: readonly string[]): LimitName[] {
  return limitNames.filter((name) => limits[name] !== undefined && !enforced.includes(name))
}
