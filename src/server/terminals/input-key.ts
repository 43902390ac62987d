import { createHmac, createPublicKey, diffieHellman, generateKeyPairSync, hkdfSync } from 'node:crypto'
import type { Payloads } from '../../core/protocol/messages.ts'
import { inputKeyInfo, markedText, type TypedInput } from '../../core/terminals/typed-input.ts'

/**
 * The server's half of the key that marks what is typed into one terminal over one link. Its public part is signed with
 * the TERMINAL_OPEN; the agent's is not, and who puts their own in its place has every input refused (contract §7).
 */
export class InputKey {
  readonly publicKey: string
  readonly #privateKey
  readonly #sessionId: string
  #shared: Buffer | null = null
  #counter = 0

  constructor(sessionId: string) {
    const { publicKey, privateKey } = generateKeyPairSync('x25519')
    this.publicKey = publicKey.export({ format: 'jwk' }).x ?? ''
    this.#privateKey = privateKey
    this.#sessionId = sessionId
  }

  /**
   * The agent's half has come. Throws where it is none. Only the first counts: a second would begin the counter anew, and
   * what someone had left out before would not be missed.
   */
  agree(agentKey: string): void {
    if (this.#shared !== null) return
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: agentKey }, format: 'jwk' })
    const secret = diffieHellman({ privateKey: this.#privateKey, publicKey })
    const info = inputKeyInfo(this.#sessionId, this.publicKey, agentKey)
    this.#shared = Buffer.from(hkdfSync('sha256', secret, '', info, 32))
  }

  /**
   * The payload as it is sent: as it is to an agent that gave no key, which is of a release before this one. It counts
   * all the same: who holds the key back for a while, and what is typed meanwhile, leaves a gap.
   */
  mark<T extends TypedInput>(type: T, payload: Payloads[T]): Payloads[T] {
    const counter = this.#counter++
    if (this.#shared === null) return payload
    const mac = createHmac('sha256', this.#shared)
      .update(markedText(type, payload, counter))
      .digest('base64url')
    return { ...payload, counter, mac }
  }
}
