import { createPublicKey, verify } from 'node:crypto'
import { type ReleaseSignature, releaseText } from '../core/release.ts'
import { ownPackage } from './own-files.ts'

/** Fixed header of an Ed25519 public key in DER (RFC 8410 §4), before its 32 bytes. */
const spkiHead = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * Public key that signs releases, base64 of its 32 bytes; null in a build without one. Part of the build, so
 * that no argument or environment variable can replace it.
 */
export const ownReleaseKey = (): string | null => ownPackage().releaseKey ?? null

export function isReleaseSigned(key: string, release: ReleaseSignature): boolean {
  const der = Buffer.concat([spkiHead, Buffer.from(key, 'base64')])
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' })
  return verify(null, Buffer.from(releaseText(release)), publicKey, Buffer.from(release.signature, 'base64'))
}

/** Read at startup: after a change to the owner of a data directory, rsm's own files may be unreadable. */
const { version } = ownPackage()

export const serverVersion = (): string => version
