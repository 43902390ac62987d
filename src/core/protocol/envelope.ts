import type { MessageType, Payloads } from './messages.ts'

/** The text of a frame. `id` has to be unique on the link, `timestamp` is ISO 8601 UTC. */
export function encode<T extends MessageType>(
  type: T,
  payload: Payloads[T],
  id: string,
  timestamp: string,
): string {
  return JSON.stringify({ type, id, timestamp, payload })
}
