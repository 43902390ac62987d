/** Architectures with builds, by Node's name. */
export const architectures = ['x64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** Restricted, because versions become names of directories. */
export const versionPattern: RegExp = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:[-+][0-9A-Za-z.+-]{1,64})?$/

/** Signature of one executable by the release's maker, as in its `.sig` (contract §10). */
export interface ReleaseSignature {
  readonly version: string
  readonly os: 'linux'
  readonly arch: Architecture
  /** SHA-256 of the executable, 64 hex digits. */
  readonly sha256: string
  /** Ed25519 over `releaseText`, base64. */
  readonly signature: string
}

/** An executable of rsm that a server offers for download. */
export interface Build {
  /** As under `/dl`: `rsm-linux-x64`. */
  readonly name: string
  readonly arch: Architecture
  /** SHA-256 of the executable, 64 hex digits. */
  readonly sha256: string
  /** Bytes. */
  readonly size: number
}

/** Comparison of two versions; releases with the same or neighbouring minor numbers are compatible. */
interface VersionComparison {
  readonly isOlder: boolean
  readonly isNewer: boolean
  readonly isCompatible: boolean
}

/** Text that a release key signs; its prefix distinguishes it from all other Ed25519-signed texts. */
export const releaseText = ({ version, os, arch, sha256 }: Omit<ReleaseSignature, 'signature'>): string =>
  `rsm-release v1\n${version}\n${os}-${arch}\n${sha256}\n`

/** Parses a `.sig`, from its text or its parsed JSON; null if invalid. */
export function readReleaseSignature(given: unknown): ReleaseSignature | null {
  if (typeof given === 'string')
    try {
      return readReleaseSignature(JSON.parse(given) ?? {})
    } catch {
      return null
    }
  if (typeof given !== 'object' || given === null) return null
  const { version, os, arch, sha256, signature } = given as Record<string, unknown>
  const known = architectures.find((each) => each === arch)
  if (typeof version !== 'string' || !versionPattern.test(version)) return null
  if (os !== 'linux' || known === undefined) return null
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return null
  if (typeof signature !== 'string' || !/^[A-Za-z0-9+/]{86}==$/.test(signature)) return null
  return { version, os, arch: known, sha256, signature }
}

export const buildName = (arch: Architecture): string => `rsm-linux-${arch}`

/** The build that a file name stands for, and whether it is compressed; null for any other name. */
export function buildOf(file: string): { arch: Architecture; isXz: boolean } | null {
  const [, word, xz] = /^rsm-linux-(\w+)(\.xz)?$/.exec(file) ?? []
  const arch = architectures.find((each) => each === word)
  return arch === undefined ? null : { arch, isXz: xz !== undefined }
}

function numbers(version: string): [number, number, number] | null {
  const [, major, minor, patch] = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})/.exec(version) ?? []
  return patch === undefined ? null : [Number(major), Number(minor), Number(patch)]
}

/** Compares the three numbers (semver.org §11), without suffixes like `-beta.1`; null if either is invalid. */
export function compareVersions(one: string, other: string): VersionComparison | null {
  const [left, right] = [numbers(one), numbers(other)]
  if (left === null || right === null) return null
  const at = left.findIndex((part, index) => part !== right[index])
  const difference = at < 0 ? 0 : (left[at] ?? 0) - (right[at] ?? 0)
  const isCompatible = left[0] === right[0] && Math.abs(left[1] - right[1]) <= 1
  return { isOlder: difference < 0, isNewer: difference > 0, isCompatible }
}

/** Advice if an agent and its server have different releases; HOST stands for the host. */
export const skewAdvice = ({ isOlder }: VersionComparison): string =>
  isOlder
    ? 'install the release of the server on HOST: `rsm hosts upgrade HOST`'
    : 'upgrade the server: `rsm server upgrade FILE`'

/** WARNING for an agent more than one minor version away (contract §10); null if not, or if either is invalid. */
export function skewReason(agent: string, server: string): string | null {
  const found = compareVersions(agent, server)
  if (found === null || found.isCompatible) return null
  const [age, what] = found.isOlder ? ['older', 'agent'] : ['newer', 'server']
  return `the agent is ${agent}: more than one minor version ${age} than the server (${server}): upgrade the ${what}`
}
