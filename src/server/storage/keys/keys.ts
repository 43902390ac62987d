import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  sign,
  timingSafeEqual,
} from 'node:crypto'
import type { RunMark } from '../../../core/protocol/messages.ts'
import { signedBytes } from '../../../core/protocol/orders.ts'
import { open, seal } from '../../../core/sealing.ts'
import type { Keys } from '../ports/keys.ts'

/** Lifetime of a signature, in milliseconds of the server's clock (contract §6). */
export const signatureLife = 5 * 60_000

export const sealKeyBytes = 32

function idOf(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16)
}

/** Identifies a sealing key without revealing it; null if the bytes are not one. */
export function sealKeyId(bytes: Buffer): string | null {
  return bytes.length === sealKeyBytes ? idOf(Buffer.concat([Buffer.from('rsm sealing key\0'), bytes])) : null
}

export function newSigningKey(): Buffer {
  return Buffer.from(generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }))
}

function publicBytes(privateKey: KeyObject): Buffer {
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32)
}

/** Secret 32 bytes of an Ed25519 key. */
function seedOf(privateKey: KeyObject): Buffer {
  return privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
}

/** Id by which agents know a signing key; null if the bytes are not one. */
export function signingKeyId(pem: Buffer): string | null {
  try {
    const key = createPrivateKey(pem)
    return key.asymmetricKeyType === 'ed25519' ? idOf(publicBytes(key)) : null
  } catch {
    return null
  }
}

export function createKeys(sealKey: Buffer, signingKey: Buffer): Keys {
  const privateKey = createPrivateKey(signingKey)
  const publicKey = publicBytes(privateKey)
  const keyId = idOf(publicKey)
  const markKey = Buffer.from(hkdfSync('sha256', seedOf(privateKey), '', 'rsm-mark-1', 32))
  const macOf = (agentId: string, { run, sequence }: RunMark) =>
    createHmac('sha256', markKey)
      .update(JSON.stringify([agentId, run, sequence]))
      .digest('base64url')
  return {
    serverKey: publicKey.toString('base64'),
    keyId,
    sign(type, agentId, payload, expiry) {
      const full = { ...payload, expiry, keyId }
      const signature = sign(null, signedBytes(type, agentId, full), privateKey).toString('base64')
      return { ...full, signature }
    },
    authenticated: (agentId, { run, sequence }) => ({
      run,
      sequence,
      mac: macOf(agentId, { run, sequence }),
    }),
    isAuthentic(agentId, { mac = '', ...mark }) {
      const [given, own] = [Buffer.from(mac), Buffer.from(macOf(agentId, mark))]
      return given.length === own.length && timingSafeEqual(given, own)
    },
    seal: (plain, context) => seal(plain, sealKey, context, randomBytes),
    open: (sealed, context) => open(sealed, sealKey, context),
    digest: (plain) => createHmac('sha256', sealKey).update(plain).digest('hex'),
  }
}
