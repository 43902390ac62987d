import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { longestSentence } from '../../core/protocol/bounds.ts'
import type { TerminalOpen } from '../../core/protocol/messages.ts'
import { LineBudget } from '../../core/rates.ts'
import { type SignedType, signedBytes } from '../../core/signing.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'

/** The fixed head of an Ed25519 public key in DER (RFC 8410 §4), before its 32 bytes. */
const spkiHead = Buffer.from('302a300506032b6570032100', 'hex')

/** Refusals that are kept word by word; of more only the count. */
const maxRefusals = 16

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
 * What this agent was asked to do without a good signature. Whoever asked has its answer; the true server hears of it
 * over a later link, and one that signs well has heard (reliability S05).
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

  /** As `verify`; a good signature tells that the server of this link has heard what was told over it. */
  watching(verify: Verify): Verify {
    return (type, payload) => {
      const doubt = verify(type, payload)
      if (doubt === null) this.#trusted()
      return doubt
    }
  }

  /** Notes that nothing was done: `what` names the message, `reason` is that of a `Doubt`. */
  note(what: string, reason: string): void {
    const leftOut = this.#lines.take('', this.#clock.monotonic())
    if (leftOut !== null) this.#log('ERROR', 'refused what the server asked for', { what, reason, leftOut })
    const sentence = `${reason} (${what}, ${new Date(this.#clock.now()).toISOString()})`
    if (this.#refused.length >= maxRefusals) this.#more += 1
    else this.#refused.push({ sentence: sentence.slice(0, longestSentence), isReported: false })
  }

  /** The sentences for a link that has just come up. */
  messages(): string[] {
    const sentences = this.#refused.map((refused) => {
      refused.isReported = true
      return refused.sentence
    })
    return this.#more > 0 ? [...sentences, `signature refused ${this.#more} times more`] : sentences
  }

  #trusted(): void {
    if (this.#refused.length === 0) return
    this.#refused = this.#refused.filter(({ isReported }) => !isReported)
    this.#more = 0
  }
}
