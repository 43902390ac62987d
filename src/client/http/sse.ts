import { StringDecoder } from 'node:string_decoder'
import { type ServerEvent, SseTextParser } from './sse-text.ts'

/** Turns the bytes of a stream into events, however they are cut. */
export class SseParser extends SseTextParser {
  readonly #decoder = new StringDecoder('utf8')

  /** The events that these bytes complete. */
  push(bytes: Buffer): ServerEvent[] {
    return this.pushText(this.#decoder.write(bytes))
  }
}
