import type { WebSocket } from 'ws'
import { after } from './backoff.ts'

/** After this many pings without a word from the other end a connection counts as lost. */
const patience = 2

/**
 * Pings every `interval` milliseconds, and ends a connection on which nothing comes any more, as on a dead path, where TCP
 * would wait for many minutes; `lost` hears of that first.
 */
export function keepAlive(socket: WebSocket, interval: number, lost = () => {}, later = after): void {
  let unanswered = 0
  const heard = () => {
    unanswered = 0
  }
  // Counted in pings and not in time: a process that was stopped, or waits for a slow terminal, asks before it gives up.
  const tick = () => {
    if (unanswered >= patience) {
      lost()
      return socket.terminate()
    }
    unanswered++
    socket.ping()
    cancel = later(interval, tick)
  }
  let cancel = later(interval, tick)
  for (const event of ['message', 'ping', 'pong']) socket.on(event, heard)
  socket.once('close', () => cancel())
}
