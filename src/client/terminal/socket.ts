import { text } from 'node:stream/consumers'
import type { WebSocket } from 'ws'
import { terminalSubprotocol } from '../../core/protocol/terminal-messages.ts'
import type { OpenTerminalSocket, TerminalSocket } from '../../net/attachment.ts'
import type { Connection } from '../../net/connect.ts'
import { keepAlive, openWebSocket } from '../../net/web-socket.ts'
import { type Api, withQuery } from '../http/api.ts'
import { unreachable } from '../http/transport.ts'

/** Larger than any frame of ours. */
const maxPayload = 8 * 1024 * 1024
/** Somebody waits for the echo of what they type: a dead path is noticed within 12 s. */
const pingEvery = 5_000

function terminalSocket(socket: WebSocket): TerminalSocket {
  return {
    get isOpen() {
      return socket.readyState === socket.OPEN
    },
    get bufferedAmount() {
      return socket.bufferedAmount
    },
    send: (frame, sent) => socket.send(frame, () => sent?.()),
    close: (code, reason) => socket.close(code, reason),
    terminate: () => socket.terminate(),
    listen({ message, closed }) {
      keepAlive(socket, pingEvery)
      socket.on('message', (data: Buffer) => message(data.toString('utf8')))
      socket.once('close', (code, reason) => closed(code, reason.toString('utf8')))
      socket.resume()
    },
  }
}

/**
 * Opens sockets of a terminal session, with the client's token in a header. Errors: what the server answered instead, or
 * `unreachable`.
 */
export function terminalSockets(
  connection: Connection,
  token: string | undefined,
  api: Api,
  sessionId: string,
  watch: boolean,
): OpenTerminalSocket {
  return async (after, signal) => {
    const query = { after, watch: watch || undefined }
    const path = withQuery(`/ws/terminal/${encodeURIComponent(sessionId)}`, query)
    const socket = openWebSocket(connection, path, { protocol: terminalSubprotocol, token, maxPayload })
    const giveUp = () => socket.terminate()
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      return await new Promise((resolve, reject) => {
        const failed = (error: Error) => reject(unreachable(connection, error))
        // It stays: whatever ends an open socket is told by its `close`.
        socket.on('error', failed)
        socket.once('open', () => {
          // Nothing is to come before somebody listens.
          socket.pause()
          resolve(terminalSocket(socket))
        })
        socket.once('unexpected-response', (request, response) => {
          const { statusCode = 0, headers: answered } = response
          text(response)
            .then((body) => reject(api.failure(statusCode, body, answered)))
            .catch(failed)
            // ws leaves the end of a refused handshake to whoever listens for it.
            .finally(() => request.destroy())
        })
      })
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }
}
