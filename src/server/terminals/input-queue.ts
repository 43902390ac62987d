import {
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  randomUUID,
} from 'node:crypto'
import type { Payloads } from '../../core/protocol/messages.ts'
import { Burst } from '../../core/rates.ts'
import {
  inputKeyInfo,
  isSameCount,
  macText,
  missingInput,
  type TypedCount,
  TypedCounter,
  type TypedInput,
} from '../../core/terminals/terminal.ts'
import { pieces } from '../../core/text/pieces.ts'
import type { AgentLink } from '../storage/ports/cluster.ts'
import type { InputPlace, TerminalClient } from '../storage/ports/terminals.ts'

/** Characters per frame to the agent. */
const pieceLength = 16 * 1024
/** Characters in flight to the agent at which the client is paused, and at which it is resumed. */
const high = 64 * 1024
const low = 16 * 1024
/** Characters of input kept while the host is disconnected. */
const maxKept = 64 * 1024
/** Cost of a frame beside its text, because single characters and resizes pile up too. */
const overhead = 100
/** Count of a session whose earlier input was not counted. */
const unknownCount: TypedCount = { by: null, count: 0 }

/** Input for the agent: cut into pieces, with backpressure from the link. */
export class InputQueue {
  #link: AgentLink | null = null
  #kept = ''
  #onItsWay = 0
  #paused: TerminalClient | null = null
  #key: InputKey | null = null
  /** Input passed on, and received as far as is known. */
  #typed: TypedCounter
  /** Whether the agent counts input. */
  #isCounted = false
  /** Id for the input of clients that do not count. */
  #own = ''
  readonly #drops = new Burst()
  readonly #refusals = new Burst()
  readonly #sessionId: string
  readonly #client: () => TerminalClient | null

  /** `isNew`: nothing was typed into the session before. */
  constructor(sessionId: string, client: () => TerminalClient | null, isNew = true) {
    this.#sessionId = sessionId
    this.#client = client
    this.#typed = new TypedCounter(isNew ? undefined : unknownCount)
  }

  /** Returns the public part of a key for TERMINAL_OPEN. */
  offer(): string {
    this.#key = new InputKey(this.#sessionId)
    return this.#key.publicKey
  }

  /** Throws if the key is invalid. */
  agree(agentKey: string): void {
    this.#key?.agree(agentKey)
  }

  /** The input count reported to clients; null while the host is disconnected. */
  get typed(): TypedCount | null {
    const { by, count } = this.#typed
    return this.#link && { by, count }
  }

  /** `typed`: the input that the agent received; undefined if it does not count. */
  linked(link: AgentLink | null, typed?: TypedCount): void {
    this.#link = link
    if (!link) return
    const before = this.#typed
    // An agent that does not count may have lost what was sent over its last link.
    this.#typed = new TypedCounter(typed ?? (before.by === '' ? before : unknownCount))
    this.#isCounted = typed !== undefined
    const { by, count } = this.#typed
    const client = this.#client()
    if (client?.acknowledges) client.send('TERMINAL_TYPED', { sessionId: this.#sessionId, by, count })
    const kept = this.#kept
    this.#kept = ''
    if (isSameCount(before, this.#typed)) return this.#take(link, kept)
    if (kept === '' && before.by !== this.#own) return
    // No client resends this input.
    const isAll = before.by === by
    const message = missingInput(kept.length + (isAll ? before.count - count : 0), isAll)
    client?.send('ERROR', { code: 503, message, refId: null })
  }

  push(data: string, refId: string, place?: InputPlace): void {
    // Empty input would add nothing to the kept length.
    if (data === '') return
    if (this.#link) return this.#take(this.#link, data, place)
    // A counting client resends it when the host is back.
    if (place) return
    if (this.#kept.length + data.length > maxKept)
      return this.#client()?.send('ERROR', {
        code: 503,
        message: 'the host is disconnected and its input buffer is full: input dropped',
        refId,
      })
    this.#kept += data
  }

  /** The host dropped input at `now` (monotonic milliseconds), because its buffer was full. */
  dropped(now: number): void {
    if (!this.#drops.begins(now)) return
    const message = 'the program on the host does not read its input: input is dropped'
    this.#client()?.send('ERROR', { code: 413, message, refId: null })
  }

  /** The host refused input with an invalid MAC at `now`. */
  refused(now: number): void {
    if (!this.#refusals.begins(now)) return
    const message =
      'the host refused input that this server did not send: someone between them tries to type into this session'
    this.#client()?.send('ERROR', { code: 403, message, refId: null })
  }

  /** The client disconnected; the next one starts unpaused. */
  clientGone(): void {
    this.#paused = null
  }

  /** Resizes use the same queue and backpressure as input. */
  resize(cols: number, rows: number): void {
    const link = this.#link
    if (!link) return
    this.#count(overhead, (written) =>
      this.#type(link, 'TERMINAL_RESIZE', { sessionId: this.#sessionId, cols, rows }, written),
    )
    this.#balance()
  }

  /** Passes on new input; its client resends input after a gap. */
  #take(link: AgentLink, data: string, place: InputPlace = this.#ownPlace()): void {
    const fresh = data && this.#typed.take({ data, ...place })
    if (!fresh) return
    let position = this.#typed.count - fresh.length
    for (const piece of pieces(fresh, pieceLength)) {
      const at = this.#isCounted ? { by: place.by, position } : {}
      position += piece.length
      this.#count(piece.length + overhead, (written) =>
        this.#type(link, 'TERMINAL_INPUT', { sessionId: this.#sessionId, data: piece, ...at }, written),
      )
    }
    this.#balance()
  }

  #ownPlace(): InputPlace {
    if (this.#own === '' || this.#typed.by !== this.#own) {
      this.#own = randomUUID()
      return { by: this.#own, position: 0 }
    }
    return { by: this.#own, position: this.#typed.count }
  }

  #type<T extends TypedInput>(link: AgentLink, type: T, payload: Payloads[T], written: () => void): boolean {
    return link.send(type, this.#key?.addMac(type, payload) ?? payload, written)
  }

  #count(size: number, send: (written: () => void) => boolean): void {
    this.#onItsWay += size
    const written = () => {
      this.#onItsWay -= size
      this.#balance()
    }
    if (!send(written)) written()
  }

  #balance(): void {
    if (this.#paused && this.#onItsWay <= low) {
      this.#paused.resume()
      this.#paused = null
    } else if (!this.#paused && this.#onItsWay > high) {
      this.#paused = this.#client()
      this.#paused?.pause()
    }
  }
}

/**
 * The server's half of the MAC key for input into one terminal over one link. Its public part is signed with
 * the TERMINAL_OPEN. The agent's is not, so if a third party replaces it, all input is refused (contract §7).
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
   * Takes the agent's half. Throws if it is invalid. Only the first counts: a second would restart the
   * counter and hide omitted input.
   */
  agree(agentKey: string): void {
    if (this.#shared !== null) return
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: agentKey }, format: 'jwk' })
    const secret = diffieHellman({ privateKey: this.#privateKey, publicKey })
    const info = inputKeyInfo(this.#sessionId, this.publicKey, agentKey)
    this.#shared = Buffer.from(hkdfSync('sha256', secret, '', info, 32))
  }

  /**
   * Adds a MAC, or returns the payload as it is for an agent without a key (an older release). The counter
   * always advances, so that input sent while the agent's key is held back leaves a gap.
   */
  addMac<T extends TypedInput>(type: T, payload: Payloads[T]): Payloads[T] {
    const counter = this.#counter++
    if (this.#shared === null) return payload
    const mac = createHmac('sha256', this.#shared)
      .update(macText(type, payload, counter))
      .digest('base64url')
    return { ...payload, counter, mac }
  }
}
