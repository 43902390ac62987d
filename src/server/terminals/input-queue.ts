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
import type { AgentLink } from '../storage/ports/agent-link.ts'
import type { InputPlace, TerminalClient } from '../storage/ports/terminal-client.ts'

/** Characters of one frame to the agent. */
const pieceLength = 16 * 1024
/** So much may be on its way to the agent before its client is read no further … */
const high = 64 * 1024
const low = 16 * 1024
/** … and so much is kept while the agent is away. */
const maxKept = 64 * 1024
/** What a frame costs beside its text: single characters, and changes of size, pile up as well. */
const overhead = 100
/** Count of a session whose earlier input was not counted. */
const unknownCount: TypedCount = { by: null, count: 0 }

/** Input on its way to the agent: in pieces, and no faster than the link takes them. */
export class InputQueue {
  #link: AgentLink | null = null
  #kept = ''
  #onItsWay = 0
  #paused: TerminalClient | null = null
  #key: InputKey | null = null
  /** What was passed on, and came as far as is known. */
  #typed: TypedCounter
  /** Whether the agent counts too. */
  #isCounted = false
  /** The row of input of clients that do not count. */
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

  /** A key for a TERMINAL_OPEN that is to be sent: its public part. */
  offer(): string {
    this.#key = new InputKey(this.#sessionId)
    return this.#key.publicKey
  }

  /** The agent has answered with its own. Throws where that is none. */
  agree(agentKey: string): void {
    this.#key?.agree(agentKey)
  }

  /** What its clients are told of their input; null while the host is away. */
  get typed(): TypedCount | null {
    const { by, count } = this.#typed
    return this.#link && { by, count }
  }

  /** `typed`: what the agent has taken; undefined for one that does not count. */
  linked(link: AgentLink | null, typed?: TypedCount): void {
    this.#link = link
    if (!link) return
    const before = this.#typed
    // Of one that does not count, what was sent over its last link may be lost.
    this.#typed = new TypedCounter(typed ?? (before.by === '' ? before : unknownCount))
    this.#isCounted = typed !== undefined
    const { by, count } = this.#typed
    const client = this.#client()
    if (client?.acknowledges) client.send('TERMINAL_TYPED', { sessionId: this.#sessionId, by, count })
    const kept = this.#kept
    this.#kept = ''
    if (isSameCount(before, this.#typed)) return this.#take(link, kept)
    if (kept === '' && before.by !== this.#own) return
    // No client sends these again.
    const isAll = before.by === by
    const message = missingInput(kept.length + (isAll ? before.count - count : 0), isAll)
    client?.send('ERROR', { code: 503, message, refId: null })
  }

  push(data: string, refId: string, place?: InputPlace): void {
    // It would cost nothing of what may be kept.
    if (data === '') return
    if (this.#link) return this.#take(this.#link, data, place)
    // Its client sends it again when the host is back.
    if (place) return
    if (this.#kept.length + data.length > maxKept)
      return this.#client()?.send('ERROR', {
        code: 503,
        message: 'the host is away, and too much was typed meanwhile: this was dropped',
        refId,
      })
    this.#kept += data
  }

  /** The host had no place for some of it at `now` (monotonic milliseconds). */
  dropped(now: number): void {
    if (!this.#drops.begins(now)) return
    const message = 'the program on the host reads no input: what is typed is dropped'
    this.#client()?.send('ERROR', { code: 413, message, refId: null })
  }

  /** The host has refused at `now` what came over the link as if it was typed here. */
  refused(now: number): void {
    if (!this.#refusals.begins(now)) return
    const message =
      'the host refused input that this server did not send: someone between them tries to type into this session'
    this.#client()?.send('ERROR', { code: 403, message, refId: null })
  }

  /** Its client is gone: whoever comes next is read from the beginning. */
  clientGone(): void {
    this.#paused = null
  }

  /** Changes of size take the same way, as fast as the link takes them. */
  resize(cols: number, rows: number): void {
    const link = this.#link
    if (!link) return
    this.#count(overhead, (written) =>
      this.#type(link, 'TERMINAL_RESIZE', { sessionId: this.#sessionId, cols, rows }, written),
    )
    this.#balance()
  }

  /** Passes on what is new; what follows a gap is sent again by its client. */
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
   * The agent's half has come. Throws where it is none. Only the first counts: a second would restart the counter, and
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
  addMac<T extends TypedInput>(type: T, payload: Payloads[T]): Payloads[T] {
    const counter = this.#counter++
    if (this.#shared === null) return payload
    const mac = createHmac('sha256', this.#shared)
      .update(macText(type, payload, counter))
      .digest('base64url')
    return { ...payload, counter, mac }
  }
}
