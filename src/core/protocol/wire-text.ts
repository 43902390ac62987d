import type { MessageType, Payloads, ScriptOutput } from './messages.ts'

/** Subprotocol of our agents; without it only base-protocol messages are sent (contract §6). */
export const subprotocol = 'rsm.1'

/** Output text comes last in a frame, so that it can be split off without parsing. */
const textBegins = Buffer.from(',"data":"')
const textEnds = '"}}'
/**
 * Head of an output frame exactly as our agents build it (encodeAround). In a frame with other keys, another order or
 * duplicates, only a full parse can find the output.
 */
const headOfOurs =
  /^\{"type":"(?:SCRIPT|TERMINAL)_OUTPUT","id":"[^"\\]*","timestamp":"[^"\\]*","payload":\{"(?:taskId":"[^"\\]*","stream":"std(?:out|err)|sessionId":"[^"\\]*)","sequence":\d{1,16}(?:,"phase":"(?:VERIFY|ROLLBACK)")?$/
/** Upper bound of the head, in bytes. */
const longestHead = 512

/** An output frame in two parts: `head` is the frame with an empty text, `json` the text as it is in the frame. */
interface OutputFrame {
  readonly head: string
  readonly json: Uint8Array
  readonly data: string
}

/** `id` must be unique on the link; `timestamp` is ISO 8601 UTC. */
export function encode<T extends MessageType>(
  type: T,
  payload: Payloads[T],
  id: string,
  timestamp: string,
): string {
  return JSON.stringify({ type, id, timestamp, payload })
}

/** Parts of a SCRIPT_OUTPUT frame before and after its text. */
export function encodeAround(
  about: Omit<ScriptOutput, 'data'>,
  id: string,
  timestamp: string,
): { head: string; tail: string } {
  const { taskId, stream, sequence, phase } = about
  const place = { taskId, stream, sequence, ...(phase && { phase }) }
  const frame = encode('SCRIPT_OUTPUT', { ...place, data: '' }, id, timestamp)
  const tail = '}}'
  return { head: frame.slice(0, -(tail.length + '""'.length)), tail }
}

/**
 * Splits a frame that is built like those of our agents; null for any other, valid or not. Most of a link's traffic
 * is output, so its JSON text is stored as received instead of being encoded again.
 */
export function splitOutput(frame: Buffer): OutputFrame | null {
  const at = frame.subarray(0, longestHead).indexOf(textBegins)
  if (at < 0 || frame.toString('latin1', frame.length - textEnds.length) !== textEnds) return null
  if (!headOfOurs.test(frame.toString('utf8', 0, at))) return null
  const begin = at + textBegins.length - 1
  const json = frame.subarray(begin, frame.length - textEnds.length + 1)
  try {
    const data = JSON.parse(json.toString('utf8')) as unknown
    if (typeof data !== 'string') return null
    return { head: `${frame.toString('utf8', 0, begin)}""}}`, json, data }
  } catch {
    return null
  }
}

/** A server-sent event in wire format (WHATWG HTML §9.2); `data` becomes JSON, which contains no line break. */
export function formatEvent(event: string, data: unknown, id?: string | number): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}
