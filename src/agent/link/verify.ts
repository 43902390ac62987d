import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { Payloads } from '../../core/protocol/messages.ts'
import { type SignedType, signedBytes } from '../../core/signing.ts'

/** The fixed head of an Ed25519 public key in DER (RFC 8410 §4), before its 32 bytes. */
const spkiHead = Buffer.from('302a300506032b6570032100', 'hex')

interface VerifyOptions {
  readonly agentId: string
  /** Pinned at the registration: Ed25519, base64, bare or DER. */
  readonly serverKey: string
  readonly keyId: string
  readonly allowUnsigned: boolean
  /** Of the present link, as its HELLO said it. */
  readonly linkId: () => string
  /** Milliseconds since 1970 by the server's clock. */
  readonly serverNow: () => number
}

/** Why a message from the server is not to be trusted. */
export interface Doubt {
  readonly reason: string
  /** All else of the message is in order: it may be the fault of a clock. */
  readonly isTooOld: boolean
}

/** Null where the message is to be trusted. */
export type Verify = <T extends SignedType>(type: T, payload: Payloads[T]) => Doubt | null

function publicKey(text: string): KeyObject {
  const bytes = Buffer.from(text, 'base64')
  const der = bytes.length === 32 ? Buffer.concat([spkiHead, bytes]) : bytes
  return createPublicKey({ key: der, format: 'der', type: 'spki' })
}

export function verifier(options: VerifyOptions): Verify {
  let key: KeyObject | undefined
  const doubt = (reason: string, isTooOld = false): Doubt => ({ reason, isTooOld })
  return (type, payload) => {
    const { signature, expiry, keyId } = payload
    if (!signature)
      return options.allowUnsigned
        ? null
        : doubt('signature missing: this agent runs only what its server signed')
    if (keyId !== options.keyId)
      return doubt(
        `signature by the key ${keyId}, not by ${options.keyId}, which this agent learnt when it registered`,
      )
    key ??= publicKey(options.serverKey)
    if (!verify(null, signedBytes(type, options.agentId, payload), key, Buffer.from(signature, 'base64')))
      return doubt('signature does not verify: the message was altered, or is not from this server')
    // Needs no clock: who answers heartbeats in the server's place says what time it is.
    if (payload.linkId !== undefined && payload.linkId !== options.linkId())
      return doubt(
        'signature is for another link of this agent: the message was sent before, and is replayed',
      )
    const until = Date.parse(expiry ?? '')
    if (!(options.serverNow() <= until)) return doubt(`signature expired at ${expiry}`, true)
    return null
  }
}
