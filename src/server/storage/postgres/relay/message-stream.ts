import type { RelayMessage } from './messages.ts'

/** Of one message; what claims to be longer is none of ours. */
const longestMessage = 16 * 1024 * 1024
const headBytes = 8
const nothing = Buffer.alloc(0)

/** A message as bytes: their number, that of its JSON text, the text, and what follows it as it is. */
export function encodeMessage(message: RelayMessage, body: Uint8Array = nothing): Buffer {
  const text = Buffer.from(JSON.stringify(message))
  const head = Buffer.allocUnsafe(headBytes)
  head.writeUInt32BE(text.length + body.length, 0)
  head.writeUInt32BE(text.length, 4)
  return Buffer.concat([head, text, body])
}

interface Read {
  readonly message: RelayMessage
  readonly body: Buffer
}

/** Puts messages together again, however their bytes are cut. */
export class MessageReader {
  #chunks: Buffer[] = []
  #size = 0
  /** Bytes of the next step: a head, or a message with its head. */
  #wanted = headBytes

  /** The messages that are complete with this. Throws for bytes that are no messages. */
  read(chunk: Buffer): Read[] {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    const found: Read[] = []
    while (this.#size >= this.#wanted) {
      const bytes = Buffer.concat(this.#chunks)
      const end = headBytes + bytes.readUInt32BE(0)
      if (end > longestMessage) throw new Error('no message of a relay')
      const isWhole = this.#size >= end
      if (isWhole) found.push(decode(bytes, end))
      this.#keep(isWhole ? bytes.subarray(end) : bytes)
      this.#wanted = isWhole ? headBytes : end
    }
    return found
  }

  #keep(bytes: Buffer): void {
    this.#chunks = [bytes]
    this.#size = bytes.length
  }
}

function decode(bytes: Buffer, end: number): Read {
  const textEnd = headBytes + bytes.readUInt32BE(4)
  if (textEnd > end) throw new Error('no message of a relay')
  const message = JSON.parse(bytes.toString('utf8', headBytes, textEnd)) as RelayMessage
  return { message, body: bytes.subarray(textEnd, end) }
}
