import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { type ReleaseSignature, releaseText } from '../../../src/core/release.ts'

/** A release key made for a test, and its public half as a build holds it. */
export interface ReleaseKey {
  readonly key: KeyObject
  readonly held: string
}

export function newReleaseKey(): ReleaseKey {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const held = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
  return { key: privateKey, held }
}

export const ownArch = process.arch === 'arm64' ? 'arm64' : 'x64'

/** Content of the `.sig` file of an executable with these bytes. */
export function signedBy(
  { key }: ReleaseKey,
  version: string,
  bytes: string | Buffer,
  arch: 'x64' | 'arm64' = ownArch,
): ReleaseSignature {
  const about = {
    version,
    os: 'linux',
    arch,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  } as const
  return { ...about, signature: sign(null, Buffer.from(releaseText(about)), key).toString('base64') }
}
