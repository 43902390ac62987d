import {
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  timingSafeEqual,
} from 'node:crypto'
import type { Payloads } from '../../core/protocol/messages.ts'
import { inputKeyInfo, macText, type TypedInput } from '../../core/terminals/terminal.ts'

/** `gap`: the server's, but an earlier message of the server is missing. */
type Judgement = 'next' | 'foreign' | 'again' | 'gap'

/** Tells the server's input, over the link of one TERMINAL_OPEN, from forged input (contract §7). */
export class InputGuard {
  /** The agent's half, created for this message only: no other MAC is valid here. */
  readonly publicKey: string
  readonly serverKey: string
  readonly #shared: Buffer
  #next = 0

  /** `serverKey` is from the signed message. Throws if it is not a key. */
  constructor(sessionId: string, serverKey: string) {
    this.serverKey = serverKey
    const { publicKey, privateKey } = generateKeyPairSync('x25519')
    this.publicKey = publicKey.export({ format: 'jwk' }).x ?? ''
    const theirs = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: serverKey }, format: 'jwk' })
    const secret = diffieHellman({ privateKey, publicKey: theirs })
    const info = inputKeyInfo(sessionId, serverKey, this.publicKey)
    this.#shared = Buffer.from(hkdfSync('sha256', secret, '', info, 32))
  }

  judge<T extends TypedInput>(type: T, payload: Payloads[T]): Judgement {
    const { counter, mac } = payload
    if (counter === undefined || mac === undefined) return 'foreign'
    const due = createHmac('sha256', this.#shared)
      .update(macText(type, payload, counter))
      .digest()
    const given = Buffer.from(mac, 'base64url')
    if (given.length !== due.length || !timingSafeEqual(given, due)) return 'foreign'
    if (counter < this.#next) return 'again'
    // A gap changes the meaning of a line: `rm -r /tmp/x` without its end is another command.
    if (counter > this.#next) return 'gap'
    this.#next++
    return 'next'
  }
}
