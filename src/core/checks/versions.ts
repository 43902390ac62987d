/** How a version stands to another; releases of one minor number, or of neighbouring ones, understand each other in full. */
export interface VersionComparison {
  readonly isOlder: boolean
  readonly isNewer: boolean
  readonly isCompatible: boolean
}

function numbers(version: string): [number, number, number] | null {
  const [, major, minor, patch] = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})/.exec(version) ?? []
  return patch === undefined ? null : [Number(major), Number(minor), Number(patch)]
}

/** By their three numbers (semver.org §11), without what stands behind, such as `-beta.1`; null when one can not be read. */
export function compareVersions(one: string, other: string): VersionComparison | null {
  const [left, right] = [numbers(one), numbers(other)]
  if (left === null || right === null) return null
  const at = left.findIndex((part, index) => part !== right[index])
  const difference = at < 0 ? 0 : (left[at] ?? 0) - (right[at] ?? 0)
  const isCompatible = left[0] === right[0] && Math.abs(left[1] - right[1]) <= 1
  return { isOlder: difference < 0, isNewer: difference > 0, isCompatible }
}

/** What there is to do where an agent and its server are of different releases; HOST stands for the host. */
export const skewAdvice = ({ isOlder }: VersionComparison): string =>
  isOlder
    ? 'install the release of the server on HOST: `rsm hosts upgrade HOST`'
    : 'upgrade the server: `rsm server upgrade FILE`'

/**
 * Why a host is WARNING for the release of its agent: it is more than one minor number from the server's (contract §10).
 * Null where it is not, and where either is no version.
 */
export function skewReason(agent: string, server: string): string | null {
  const found = compareVersions(agent, server)
  if (found === null || found.isCompatible) return null
  const [age, what] = found.isOlder ? ['older', 'agent'] : ['newer', 'server']
  return `the agent is ${agent}: more than one minor version ${age} than the server (${server}): upgrade the ${what}`
}
