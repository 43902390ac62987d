import { WebSocket } from 'ws'
import type { Connection } from './connect.ts'

const handshakeTimeout = 15_000

interface Opening {
  readonly protocol: string
  /** Goes in a header. */
  readonly token: string | undefined
  /** Bytes of a frame, at most. */
  readonly maxPayload: number
}

/** A WebSocket over a connection; `path` is with its query, from the base URL. */
export function openWebSocket(connection: Connection, path: string, opening: Opening): WebSocket {
  const { protocol, token, maxPayload } = opening
  return new WebSocket(connection.url.replace(/^http/, 'ws') + path, protocol, {
    agent: connection.unshared,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    handshakeTimeout,
    perMessageDeflate: false,
    maxPayload,
  })
}
