import type { MessageType, Payloads, ScriptOutput } from './messages.ts'

/** The subprotocol that an agent of ours offers; without it only base-protocol messages are sent (contract §6). */
export const subprotocol = 'rsm.1'

/** The text of a frame. `id` has to be unique on the link, `timestamp` is ISO 8601 UTC. */
export function encode<T extends MessageType>(
  type: T,
  payload: Payloads[T],
  id: string,
  timestamp: string,
): string {
  return JSON.stringify({ type, id, timestamp, payload })
}

/** What stands around the text of output in its frame, which comes last (see output-frame.ts). */
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
