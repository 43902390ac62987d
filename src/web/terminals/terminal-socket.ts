import {
  type FromTerminalClient,
  type ToTerminalClient,
  terminalSubprotocol,
} from '../../core/protocol/terminal-messages.ts'
import { isReachable } from './reachable.ts'

type Sent = FromTerminalClient extends infer M
  ? M extends { type: infer T; payload: infer P }
    ? { type: T; payload: P }
    : never
  : never

export interface TerminalSocket {
  readonly isOpen: boolean
  /** False where it is not open: nothing is sent, then or later. */
  send(message: Sent): boolean
  /** Lets go of it: nothing of it is heard any more. */
  drop(): void
}

interface SocketListener {
  message(message: ToTerminalClient): void
  /** It has ended by itself; `code` is that of its close frame, 1006 without one. */
  closed(code: number): void
}

const checkInterval = 2_000
/** Silence after which the way to the server is looked at … */
const longestSilence = 20_000
/** … and the same after something was typed. */
const longestEcho = 5_000

let frames = 0

/** `path` as the server gives it, relative to its base URL; the address bar and the history never see the ticket. */
function addressOf(path: string, ticket: string, after: number | undefined): string {
  const url = new URL(path.replace(/^\//, ''), document.baseURI)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  url.hash = ''
  url.searchParams.set('ticket', ticket)
  if (after !== undefined) url.searchParams.set('after', String(after))
  return url.href
}

/** One WebSocket of a session (contract §7). */
export function openTerminalSocket(
  { path, ticket, after }: { path: string; ticket: string; after: number | undefined },
  listener: SocketListener,
): TerminalSocket {
  const socket = new WebSocket(addressOf(path, ticket, after), terminalSubprotocol)
  let heardAt = performance.now()
  let typedAt = 0
  let isDropped = false
  const check = setInterval(() => void look(), checkInterval)

  async function look(): Promise<void> {
    const now = performance.now()
    const isSuspicious = now - heardAt > longestSilence || (typedAt > heardAt && now - typedAt > longestEcho)
    if (!isSuspicious || isDropped) return
    if (await isReachable()) {
      heardAt = performance.now()
      typedAt = 0
    } else lose(1006)
  }
  function lose(code: number): void {
    if (isDropped) return
    drop()
    listener.closed(code)
  }
  function drop(): void {
    isDropped = true
    clearInterval(check)
    socket.close()
  }
  socket.addEventListener('message', ({ data }) => {
    if (isDropped) return
    heardAt = performance.now()
    listener.message(JSON.parse(String(data)) as ToTerminalClient)
  })
  socket.addEventListener('close', ({ code }) => lose(code))

  const isOpen = () => !isDropped && socket.readyState === WebSocket.OPEN

  return {
    get isOpen() {
      return isOpen()
    },
    send({ type, payload }) {
      if (!isOpen()) return false
      const timestamp = new Date().toISOString()
      socket.send(JSON.stringify({ type, id: `web-${++frames}`, timestamp, payload }))
      if (type === 'TERMINAL_INPUT') typedAt = performance.now()
      return true
    },
    drop,
  }
}
