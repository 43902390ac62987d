import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { ExecuteScript, TerminalOpen } from '../../core/protocol/messages.ts'
import { signedBytes } from '../../core/signing.ts'

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

/** Says why a message from the server is not to be trusted, or null when it is. */
export type Verify = (
  type: 'EXECUTE_SCRIPT' | 'TERMINAL_OPEN',
  payload: ExecuteScript | TerminalOpen,
) => string | null

/** Whether this reason may be the fault of a clock, as the rest of the message is in order. */
export function isTooOld(reason: string): boolean {
  return reason.startsWith('signature expired')
}

function publicKey(text: string): KeyObject {
  const bytes = Buffer.from(text, 'base64')
  const der = bytes.length === 32 ? Buffer.concat([spkiHead, bytes]) : bytes
  return createPublicKey({ key: der, format: 'der', type: 'spki' })
}

export function verifier(options: VerifyOptions): Verify {
  let key: KeyObject | undefined
  return (type, payload) => {
    const { signature, expiry, keyId } = payload
    if (!signature)
      return options.allowUnsigned ? null : 'signature missing: this agent runs only what its server signed'
    if (keyId !== options.keyId)
      return `signature by the key ${keyId}, not by ${options.keyId}, which this agent learnt when it registered`
    key ??= publicKey(options.serverKey)
    if (!verify(null, signedBytes(type, options.agentId, payload), key, Buffer.from(signature, 'base64')))
      return 'signature does not verify: the message was altered, or is not from this server'
    // Needs no clock: who answers heartbeats in the server's place says what time it is.
    if (payload.linkId !== undefined && payload.linkId !== options.linkId())
      return 'signature is for another link of this agent: the message was sent before, and is replayed'
    const until = Date.parse(expiry ?? '')
    if (!(options.serverNow() <= until)) return `signature expired at ${expiry}`
    return null
  }
}
