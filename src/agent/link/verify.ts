import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { longestSentence } from '../../core/protocol/bounds.ts'
import type { TerminalOpen } from '../../core/protocol/messages.ts'
import { type SignedType, signedBytes } from '../../core/protocol/orders.ts'
import { LineBudget } from '../../core/rates.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'

/** Fixed head of an Ed25519 public key in DER (RFC 8410 §4), before its 32 bytes. */
const spkiHead = Buffer.from('302a300506032b6570032100', 'hex')

/** Refusals kept verbatim; further ones are only counted. */
const maxRefusals = 16

interface VerifyOptions {
  readonly agentId: string
  /** Pinned at registration: Ed25519, base64, bare or DER. */
  readonly serverKey: string
  readonly keyId: string
  readonly allowUnsigned: boolean
  /** Id of the current link, as sent in its HELLO. */
  readonly linkId: () => string
  /** Milliseconds since 1970 by the server's clock. */
  readonly serverNow: () => number
}

/** Reason to distrust a message from the server. */
export interface Doubt {
  readonly reason: string
  /** The rest of the message is valid: a clock may be wrong. */
  readonly isTooOld: boolean
}

/** Null if the message is trusted. */
export type Verify = (
  type: SignedType,
  payload: Pick<TerminalOpen, 'signature' | 'expiry' | 'keyId' | 'linkId'>,
) => Doubt | null

export function verifier(options: VerifyOptions): Verify {
  let key: KeyObject | undefined
  const doubt = (reason: string, isTooOld = false): Doubt => ({ reason, isTooOld })
  return (type, payload) => {
    const { signature, expiry, keyId } = payload
    if (!signature)
      return options.allowUnsigned ? null : doubt('signature missing: this agent runs only signed orders')
    if (keyId !== options.keyId)
      return doubt(`signature by the key ${keyId}, not by ${options.keyId}, known from registration`)
    key ??= publicKey(options.serverKey)
    if (!verify(null, signedBytes(type, options.agentId, payload), key, Buffer.from(signature, 'base64')))
      return doubt('signature does not verify: the message was altered, or is not from this server')
    // Independent of clocks, because an attacker who answers heartbeats also sets the server time.
    if (payload.linkId !== undefined && payload.linkId !== options.linkId())
      return doubt('signature is for another link of this agent: the message is a replay')
    const until = Date.parse(expiry ?? '')
    if (!(options.serverNow() <= until)) return doubt(`signature expired at ${expiry}`, true)
    return null
  }
}

function publicKey(text: string): KeyObject {
  const bytes = Buffer.from(text, 'base64')
  const der = bytes.length === 32 ? Buffer.concat([spkiHead, bytes]) : bytes
  return createPublicKey({ key: der, format: 'der', type: 'spki' })
}

interface Refused {
  readonly sentence: string
  /** Reported over the current link. */
  isReported: boolean
}

/**
 * Refused orders without a valid signature. The sender gets an answer at once. The true server gets the report over a
 * later link, and has received it once it sends a valid signature (reliability S05).
 */
export class Distrust {
  #refused: Refused[] = []
  #more = 0
  readonly #lines = new LineBudget()
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Wraps `verify`: a valid signature proves that this link's server has received the reports. */
  watching(verify: Verify): Verify {
    return (type, payload) => {
      const doubt = verify(type, payload)
      if (doubt === null) this.#trusted()
      return doubt
    }
  }

  /** Records a refused message: `what` names it, `reason` is that of its `Doubt`. */
  note(what: string, reason: string): void {
    const leftOut = this.#lines.take('', this.#clock.monotonic())
    if (leftOut !== null) this.#log('ERROR', 'refused an untrusted message', { what, reason, leftOut })
    const sentence = `${reason} (${what}, ${new Date(this.#clock.now()).toISOString()})`
    if (this.#refused.length >= maxRefusals) this.#more += 1
    else this.#refused.push({ sentence: sentence.slice(0, longestSentence), isReported: false })
  }

  /** Reports for a new link. Servers audit them, because each begins with `signature ` (`isDistrust`). */
  messages(): string[] {
    const sentences = this.#refused.map((refused) => {
      refused.isReported = true
      return refused.sentence
    })
    return this.#more > 0 ? [...sentences, `signature refused ${this.#more} more times`] : sentences
  }

  #trusted(): void {
    if (this.#refused.length === 0) return
    this.#refused = this.#refused.filter(({ isReported }) => !isReported)
    this.#more = 0
  }
}
