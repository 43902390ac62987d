/** How a version stands to another; releases with the same first number understand each other. */
export interface VersionComparison {
  readonly isOlder: boolean
  readonly isNewer: boolean
  readonly isCompatible: boolean
}

function numbers(version: string): number[] | null {
  const [, ...parts] = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})/.exec(version) ?? []
  return parts.length === 3 ? parts.map(Number) : null
}

/** By their three numbers (semver.org §11), without what stands behind, such as `-beta.1`; null when one can not be read. */
export function compareVersions(one: string, other: string): VersionComparison | null {
  const [left, right] = [numbers(one), numbers(other)]
  if (left === null || right === null) return null
  const at = left.findIndex((part, index) => part !== right[index])
  const difference = at < 0 ? 0 : (left[at] ?? 0) - (right[at] ?? 0)
  return { isOlder: difference < 0, isNewer: difference > 0, isCompatible: left[0] === right[0] }
}
