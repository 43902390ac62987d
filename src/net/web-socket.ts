import { WebSocket } from 'ws'
import { after } from './backoff.ts'
import type { Connection } from './connect.ts'

const handshakeTimeout = 15_000

/** Checks of a connection between two pings; after `maxSilentChecks` without a word from the other end it counts as lost. */
const checks = 3
const maxSilentChecks = 2 * checks

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

/**
 * Pings every `interval` milliseconds, and ends a connection on which nothing comes any more, as on a dead path, where TCP
 * would wait for many minutes; `lost` hears of that first.
 */
export function keepAlive(socket: WebSocket, interval: number, lost = () => {}, later = after): void {
  let checked = 0
  let silent = 0
  const heard = () => {
    silent = 0
  }
  // Counted in looks and not in time: a process that was stopped, or waits for a slow terminal, asks before it gives up.
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
