import { closeCodes } from '../../core/protocol/close-codes.ts'
import type { TerminalMessageType, TerminalPayloads } from '../../core/terminals/terminal.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { Attachment, TerminalClient } from '../storage/ports/terminals.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import type { InputQueue } from './input-queue.ts'
import { type Replay, sizeOf } from './replay.ts'

/** Watchers per terminal: each costs a socket and its buffers. */
const maxWatchers = 20

/** Clients that watch a terminal: they cannot type, and never block it. */
export class Watchers {
  readonly #streams = new Set<ClientStream>()
  readonly #replay: Replay
  readonly #left: (client: TerminalClient) => void

  constructor(replay: Replay, left: (client: TerminalClient) => void) {
    this.#replay = replay
    this.#left = left
  }

  get names(): string[] {
    return [...this.#streams].map(({ client }) => client.caller.username)
  }

  get callers(): UserCaller[] {
    return [...this.#streams].map(({ client }) => client.caller)
  }

  /** Null if the limit is reached. */
  add(client: TerminalClient, after: number): ClientStream | null {
    if (this.#streams.size >= maxWatchers) return null
    const stream = new ClientStream(client, after, true, () => {
      if (this.#streams.has(stream)) this.#send(stream)
    })
    this.#streams.add(stream)
    return stream
  }

  attachment(stream: ClientStream): Attachment {
    const { client } = stream
    const message = 'you are reading along: your input is not sent to the session'
    return {
      input: (_data, refId) => client.send('ERROR', { code: 403, message, refId }),
      resize: () => undefined,
      acknowledge: () => undefined,
      leave: () => client.close(1000, 'left'),
      gone: () => {
        if (this.#streams.delete(stream)) this.#left(client)
      },
      parted: () => undefined,
    }
  }

  pump(): void {
    for (const stream of this.#streams) this.#send(stream)
  }

  #send(stream: ClientStream): void {
    if (!stream.pump(this.#replay)) stream.client.close(closeCodes.overloaded, 'reads too slowly')
  }

  broadcast<T extends TerminalMessageType>(type: T, payload: TerminalPayloads[T]): void {
    for (const { client } of this.#streams) client.send(type, payload)
  }

  /** Closes watchers whose token has ended. */
  dismiss(hasEnded: (caller: UserCaller) => boolean): void {
    for (const { client } of this.#streams)
      if (hasEnded(client.caller)) client.close(closeCodes.revoked, 'the token has ended')
  }

  /** Closes all watchers, without a notice that they left. */
  close(code: number, reason: string): void {
    const all = [...this.#streams]
    this.#streams.clear()
    for (const { client } of all) client.close(code, reason)
  }
}

/** Maximum bytes sent to a client that it has not acknowledged, or its socket has not taken. */
const sendWindow = 256 * 1024

/** A client's position in the output of a terminal. */
export class ClientStream {
  readonly client: TerminalClient
  /** Last sequence sent. */
  cursor: number
  /** Last sequence acknowledged, or taken by its socket. */
  delivered: number
  isNotified = false
  #inFlight: { sequence: number; size: number }[] = []
  #bytes = 0
  readonly #acknowledges: boolean
  readonly #moved: () => void

  /** `moved` is called when it can take more. Watchers need not acknowledge. */
  constructor(client: TerminalClient, after: number, watching: boolean, moved: () => void) {
    this.client = client
    this.cursor = after
    this.delivered = after
    this.#acknowledges = client.acknowledges && !watching
    this.#moved = moved
  }

  /** Sends pending output within the window. Returns false if the client fell behind the kept output. */
  pump(replay: Replay): boolean {
    while (this.#bytes < sendWindow) {
      const chunk = replay.after(this.cursor)
      if (!chunk) return true
      const { sequence, json } = chunk
      if (
        this.cursor >= 0 &&
        this.#inFlight.length > 0 &&
        sequence > this.cursor + 1 &&
        chunk === replay.first
      )
        return false
      this.cursor = sequence
      const size = sizeOf(chunk)
      this.#inFlight.push({ sequence, size })
      this.#bytes += size
      this.client.output(sequence, json, () => {
        if (!this.#acknowledges) this.#take(sequence)
      })
    }
    return true
  }

  /** Acknowledges output up to `sequence`, clamped to what was sent. */
  acknowledge(sequence: number): void {
    if (this.#acknowledges) this.#take(Math.min(sequence, this.cursor))
  }

  /** Clamps its position to `newest`. */
  bound(newest: number): void {
    this.cursor = Math.min(this.cursor, newest)
    this.delivered = Math.min(this.delivered, newest)
  }

  #take(sequence: number): void {
    if (sequence <= this.delivered) return
    this.delivered = sequence
    let taken = 0
    for (const one of this.#inFlight) {
      if (one.sequence > sequence) break
      this.#bytes -= one.size
      taken++
    }
    this.#inFlight.splice(0, taken)
    this.#moved()
  }
}

interface Greeted {
  readonly record: TerminalRecord
  readonly replay: Replay
  readonly watchers: Watchers
  readonly host: { readonly input: Pick<InputQueue, 'typed'> }
}

/** Sends the first message to a client: its session, its position in the output, and the watchers. */
export function greet(
  client: TerminalClient,
  { record, replay, watchers, host }: Greeted,
  { from, watching }: { from: number; watching: boolean },
): void {
  const { id: sessionId, hostname, cols, rows, recorded } = record
  const { names } = watchers
  if (client.acknowledges) {
    const omitted = replay.omittedAfter(from)
    const after = (replay.after(from)?.sequence ?? from + 1) - 1
    const facts = { sessionId, hostname, cols, rows, after, omitted, recorded, watching }
    client.send('TERMINAL_ATTACHED', {
      ...facts,
      last: replay.last,
      watchers: names,
      typed: host.input.typed,
    })
  } else if (!watching)
    for (const name of names) client.notify({ sessionId, kind: 'watched', message: `${name} reads along` })
}
