import type { Socket } from 'node:net'

/** Descriptor of the PTY process for its socket to the agent. */
export const agentDescriptor = 3

/** Bytes of a frame's header: the total length, and the length of its JSON part. */
const lengthsSize = 8

export interface PtyRequest {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly cols: number
  readonly rows: number
  /** Owner of the terminal's device file, because some programs open it by its name. */
  readonly uid: number
}

/** Messages from the agent to the PTY process; `id` is the terminal's. */
export type ToPtys = { readonly id: string } & (
  | { readonly to: 'open'; readonly request: PtyRequest }
  | { readonly to: 'write'; readonly bytes: Uint8Array }
  | { readonly to: 'resize'; readonly cols: number; readonly rows: number }
  /** Bytes of output that were consumed: as many may follow. */
  | { readonly to: 'credit'; readonly count: number }
  | { readonly to: 'hangUp' }
)

/** Messages from the PTY process to the agent. */
export type FromPtys = { readonly id: string } & (
  | { readonly is: 'opened'; readonly pid: number }
  | { readonly is: 'refused'; readonly reason: string }
  | { readonly is: 'output'; readonly bytes: Uint8Array }
  /** Bytes of input dropped because the program has not read for too long. */
  | { readonly is: 'dropped'; readonly count: number }
  /** After all output; `signal` is a number, 0 for none. */
  | { readonly is: 'exited'; readonly exitCode: number; readonly signal: number }
)

/** A message: plain values, and bytes that are passed on unchanged. */
interface Sendable {
  readonly id: string
  readonly bytes?: Uint8Array
}

/** One end of the socket between an agent and its PTY process. */
export class PtyChannel<Out extends Sendable, In extends Sendable> {
  readonly #socket: Socket
  #pieces: Buffer[] = []
  #size = 0

  constructor(socket: Socket, onMessage: (message: In) => void) {
    this.#socket = socket
    socket.on('data', (piece: Buffer) => this.#receive(piece, onMessage))
    // The `close` event reports a dead peer.
    socket.on('error', () => undefined)
  }

  send(message: Out): void {
    if (!this.#socket.writable) return
    const { bytes, ...rest } = message
    const json = JSON.stringify(rest)
    const jsonSize = Buffer.byteLength(json)
    const bodySize = bytes?.length ?? 0
    const frame = Buffer.allocUnsafe(lengthsSize + jsonSize + bodySize)
    frame.writeUInt32LE(lengthsSize + jsonSize + bodySize, 0)
    frame.writeUInt32LE(jsonSize, 4)
    frame.write(json, lengthsSize)
    if (bytes) frame.set(bytes, lengthsSize + jsonSize)
    this.#socket.write(frame)
  }

  /** Closes after sending all pending messages. */
  close(): void {
    this.#socket.end()
  }

  #receive(piece: Buffer, onMessage: (message: In) => void): void {
    this.#pieces.push(piece)
    this.#size += piece.length
    // Join the pieces of a long frame once, when it is complete.
    if (this.#size < this.#needed()) return
    let rest = this.#joined()
    while (rest.length >= lengthsSize && rest.length >= rest.readUInt32LE(0)) {
      const end = rest.readUInt32LE(0)
      const body = lengthsSize + rest.readUInt32LE(4)
      const message = JSON.parse(rest.toString('utf8', lengthsSize, body)) as In
      onMessage(body < end ? { ...message, bytes: rest.subarray(body, end) } : message)
      rest = rest.subarray(end)
    }
    this.#pieces = rest.length > 0 ? [rest] : []
    this.#size = rest.length
  }

  #needed(): number {
    if (this.#size < lengthsSize) return lengthsSize
    const [first] = this.#pieces
    return (first && first.length >= lengthsSize ? first : this.#joined()).readUInt32LE(0)
  }

  #joined(): Buffer {
    const [first] = this.#pieces
    if (first && this.#pieces.length === 1) return first
    const all = Buffer.concat(this.#pieces, this.#size)
    this.#pieces = [all]
    return all
  }
}
