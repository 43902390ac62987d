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

/** `gap`: it is the server's, and something that the server sent before it has not come. */
type Judgement = 'next' | 'foreign' | 'again' | 'gap'

/** Tells what the server typed, over the link of one TERMINAL_OPEN, from what anyone else did (contract §7). */
export class InputGuard {
  /** The agent's half, made for this message alone: no MAC of another holds here. */
  readonly publicKey: string
  readonly serverKey: string
  readonly #shared: Buffer
  #next = 0

  /** `serverKey` is of the signed message. Throws where it is no key. */
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
    // What is left out of a line changes its sense: `rm -r /tmp/x` without its end is another command.
    if (counter > this.#next) return 'gap'
    this.#next++
    return 'next'
  }
}
