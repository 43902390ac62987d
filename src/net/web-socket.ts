import { WebSocket } from 'ws'
import { after } from './backoff.ts'
import type { Connection } from './connect.ts'

const handshakeTimeout = 15_000

/** Checks between two pings; after `maxSilentChecks` without a frame the connection counts as lost. */
const checks = 3
const maxSilentChecks = 2 * checks

interface Opening {
  readonly protocol: string
  readonly token: string | undefined
  /** Largest frame in bytes. */
  readonly maxPayload: number
}

/** Opens a WebSocket; `path` is relative to the base URL and includes the query. */
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

/**
 * Pings every `interval` milliseconds, and terminates a connection without incoming frames, because TCP would
 * take many minutes to notice a dead path. Calls `lost` first.
 */
export function keepAlive(socket: WebSocket, interval: number, lost = () => {}, later = after): void {
  let checked = 0
  let silent = 0
  const heard = () => {
    silent = 0
  }
  // Counts checks instead of time, so that a suspended or busy process pings once more before it gives up.
  const tick = () => {
    if (silent === maxSilentChecks) {
      lost()
      return socket.terminate()
    }
    if (checked % checks === 0) socket.ping()
    checked++
    silent++
    cancel = later(interval / checks, tick)
  }
  let cancel = later(interval / checks, tick)
  for (const event of ['message', 'ping', 'pong']) socket.on(event, heard)
  socket.once('close', () => cancel())
}
