import { createPublicKey, verify } from 'node:crypto'
import { type ReleaseSignature, releaseText } from '../core/release.ts'
import { ownPackage } from './own-files.ts'

/** The fixed head of an Ed25519 public key in DER (RFC 8410 §4), before its 32 bytes. */
const spkiHead = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * The public half of the key that releases are signed by, base64 of its 32 bytes; null in a build without one. It is part
 * of the build: nothing that a process is started with can put another in its place.
 */
export const ownReleaseKey = (): string | null => ownPackage().releaseKey ?? null

/** Whether the key with this public half has signed the release. */
export function isReleaseSigned(key: string, release: ReleaseSignature): boolean {
  const der = Buffer.concat([spkiHead, Buffer.from(key, 'base64')])
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' })
  return verify(null, Buffer.from(releaseText(release)), publicKey, Buffer.from(release.signature, 'base64'))
}

/** Read at the start: once root has become the owner of a data directory, rsm's own files may be closed to it. */
const { version } = ownPackage()

/** The version of this program, from its package. */
export const serverVersion = (): string => version
