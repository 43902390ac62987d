import { type Architecture, architectures } from './join/builds.ts'

/** What a release's maker says of one executable, as its `.sig` holds it (contract §10). */
export interface ReleaseSignature {
  readonly version: string
  readonly os: 'linux'
  readonly arch: Architecture
  /** Of the executable, 64 hex digits. */
  readonly sha256: string
  /** Ed25519 over `releaseText`, base64. */
  readonly signature: string
}

/** What a release key signs; it begins unlike anything else that is signed by a key of Ed25519. */
export const releaseText = ({ version, os, arch, sha256 }: Omit<ReleaseSignature, 'signature'>): string =>
  `rsm-release v1\n${version}\n${os}-${arch}\n${sha256}\n`

/** Versions name directories. */
export const versionPattern: RegExp = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:[-+][0-9A-Za-z.+-]{1,64})?$/

/** What a `.sig` holds, from its text or what was sent of it; null where it is none. */
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
