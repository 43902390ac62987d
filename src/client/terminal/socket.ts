import { text } from 'node:stream/consumers'
import type { WebSocket } from 'ws'
import { terminalSubprotocol } from '../../core/terminals/terminal.ts'
import type { OpenTerminalSocket, TerminalSocket } from '../../net/attachment.ts'
import type { Connection } from '../../net/connect.ts'
import { keepAlive, openWebSocket } from '../../net/web-socket.ts'
import { type Api, withQuery } from '../http/api.ts'
import { unreachable } from '../http/transport.ts'

/** Larger than any of our frames. */
const maxPayload = 8 * 1024 * 1024
/** Short, because a user waits for the echo of each key: detects a dead path within 12 s. */
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

/** Sends the client's token in a header. Errors: the server's refusal, or `unreachable`. */
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
        // Stays after the socket has opened: then `close` reports the end.
        socket.on('error', failed)
        socket.once('open', () => {
          // No message may arrive before `listen`.
          socket.pause()
          resolve(terminalSocket(socket))
        })
        socket.once('unexpected-response', (request, response) => {
          const { statusCode = 0, headers: answered } = response
          text(response)
            .then((body) => reject(api.failure(statusCode, body, answered)))
            .catch(failed)
            // ws leaves it to this listener to end a refused handshake.
            .finally(() => request.destroy())
        })
      })
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }
}
