import { Burst } from '../../core/burst.ts'
import type { Payloads } from '../../core/protocol/messages.ts'
import { pieces } from '../../core/text/pieces.ts'
import type { TypedInput } from '../../core/typed-input.ts'
import type { AgentLink } from '../engine/agent-link.ts'
import type { TerminalClient } from './client.ts'
import { InputKey } from './input-key.ts'

/** Characters of one frame to the agent. */
const pieceLength = 16 * 1024
/** So much may be on its way to the agent before its client is read no further … */
const high = 64 * 1024
const low = 16 * 1024
/** … and so much is kept while the agent is away. */
const mostKept = 64 * 1024
/** What a frame costs beside its text: single characters, and changes of size, pile up as well. */
const overhead = 100

/** What is typed, on its way to the agent: in pieces, and no faster than the link takes them. */
export class InputQueue {
  #link: AgentLink | null = null
  #kept = ''
  #onItsWay = 0
  #held: TerminalClient | null = null
  #key: InputKey | null = null
  readonly #drops = new Burst()
  readonly #refusals = new Burst()
  readonly #sessionId: string
  readonly #client: () => TerminalClient | null

  constructor(sessionId: string, client: () => TerminalClient | null) {
    this.#sessionId = sessionId
    this.#client = client
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

  linked(link: AgentLink | null): void {
    this.#link = link
    if (!link) return
    const kept = this.#kept
    this.#kept = ''
    this.#send(link, kept)
  }

  push(data: string, refId: string): void {
    // It would cost nothing of what may be kept.
    if (data === '') return
    if (this.#link) return this.#send(this.#link, data)
    if (this.#kept.length + data.length > mostKept)
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
      'the host refused input that this server did not send: whoever is between them tries to type into this session'
    this.#client()?.send('ERROR', { code: 403, message, refId: null })
  }

  /** Its client is gone: whoever comes next is read from the beginning. */
  clientGone(): void {
    this.#held = null
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

  #send(link: AgentLink, data: string): void {
    for (const piece of pieces(data, pieceLength))
      this.#count(piece.length + overhead, (written) =>
        this.#type(link, 'TERMINAL_INPUT', { sessionId: this.#sessionId, data: piece }, written),
      )
    this.#balance()
  }

  #type<T extends TypedInput>(link: AgentLink, type: T, payload: Payloads[T], written: () => void): boolean {
    return link.send(type, this.#key?.mark(type, payload) ?? payload, written)
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
    if (this.#held && this.#onItsWay <= low) {
      this.#held.release()
      this.#held = null
    } else if (!this.#held && this.#onItsWay > high) {
      this.#held = this.#client()
      this.#held?.hold()
    }
  }
}
