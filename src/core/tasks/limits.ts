/** Limits, as named by the API and an agent's HELLO. */
export const limitNames = ['memoryMB', 'processes', 'cpuPercent'] as const
export type LimitName = (typeof limitNames)[number]
/**
 * Limits of one execution on its host. If the host cannot enforce a requested one, nothing runs there (exit 126).
 * `memoryMB` in MiB, swap included; `cpuPercent` of one core: 200 is two of them.
 */
export type Limits = { [Name in LimitName]?: number }

/** As in `--limit memory=512M`. */
export const limitWords: Record<LimitName, string> = {
  memoryMB: 'memory',
  processes: 'processes',
  cpuPercent: 'cpu',
}

const units: Record<LimitName, string> = { memoryMB: ' MB', processes: '', cpuPercent: ' %' }

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

/** The lower of a task's limits and those that the host sets for all tasks. */
export function lowerLimits(one: Limits, other: Limits): Limits {
  const lower: Limits = {}
  for (const name of limitNames) {
    const sizes = [one[name], other[name]].filter((size) => size !== undefined)
    if (sizes.length > 0) lower[name] = Math.min(...sizes)
  }
  return lower
}

export function notEnforced(limits: Limits, enforced: readonly string[]): LimitName[] {
  return limitNames.filter((name) => limits[name] !== undefined && !enforced.includes(name))
}
