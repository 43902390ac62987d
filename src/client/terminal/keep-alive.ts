import type { WebSocket } from 'ws'

const pingEvery = 5_000
/** So many pings without a word from the server, and the connection counts as lost. */
const patience = 2

/** Ends a connection on which nothing comes any more, as on a dead path, where TCP would wait for many minutes. */
export function keepAlive(socket: WebSocket): void {
  let unanswered = 0
  const heard = () => {
    unanswered = 0
  }
  // Counted in pings and not in time: a process that was stopped, or waits for a slow terminal, asks before it gives up.
  const timer = setInterval(() => {
    if (unanswered >= patience) {
      socket.terminate()
      return
    }
    unanswered++
    socket.ping()
  }, pingEvery)
  socket.on('message', heard)
  socket.on('ping', heard)
  socket.on('pong', heard)
  socket.once('close', () => clearInterval(timer))
}
