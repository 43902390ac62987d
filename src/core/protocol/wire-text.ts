import type { MessageType, Payloads, ScriptOutput } from './messages.ts'

/** The subprotocol that an agent of ours offers; without it only base-protocol messages are sent (contract §6). */
export const subprotocol = 'rsm.1'

/** The text of a frame's output stands last in it, so that it can be told from the rest without a look at either. */
const textBegins = Buffer.from(',"data":"')
const textEnds = '"}}'
/**
 * What stands before it in a frame of an agent of ours (encodeAround), and nothing else: in a frame with other keys, in
 * another order or twice, only a whole parse knows which text is the output.
 */
const headOfOurs =
  /^\{"type":"(?:SCRIPT|TERMINAL)_OUTPUT","id":"[^"\\]*","timestamp":"[^"\\]*","payload":\{"(?:taskId":"[^"\\]*","stream":"std(?:out|err)|sessionId":"[^"\\]*)","sequence":\d{1,16}(?:,"phase":"(?:VERIFY|ROLLBACK)")?$/
/** The rest of a frame of ours is shorter than this. */
const longestHead = 512

/** A SCRIPT_OUTPUT or TERMINAL_OUTPUT frame in two parts: `head` is the frame with an empty text, `json` the text as the frame has it. */
interface OutputFrame {
  readonly head: string
  readonly json: Uint8Array
  readonly data: string
}

/** The text of a frame. `id` has to be unique on the link, `timestamp` is ISO 8601 UTC. */
export function encode<T extends MessageType>(
  type: T,
  payload: Payloads[T],
  id: string,
  timestamp: string,
): string {
  return JSON.stringify({ type, id, timestamp, payload })
}

/** What stands around the text of output in its frame, which comes last. */
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
 * Takes apart a frame that is built like those of our agents; null for any other, valid or not. The text of
 * output is by far the most that goes over a link: what it is in JSON need not be found out again to store it.
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

/** One server-sent event as it goes over the wire (WHATWG HTML §9.2); `data` becomes JSON, which holds no line break. */
export function formatEvent(event: string, data: unknown, id?: string | number): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}
