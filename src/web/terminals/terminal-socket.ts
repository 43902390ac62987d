import { terminalSubprotocol } from '../../core/protocol/terminal-messages.ts'
import type { TerminalSocket } from '../../net/attachment.ts'

/** The server answers within so long, or the way to it is cut. */
const patience = 8_000

let asking: Promise<boolean> | undefined

async function ask(): Promise<boolean> {
  try {
    await fetch('api/health', { cache: 'no-store', signal: AbortSignal.timeout(patience) })
    return true
  } catch {
    return false
  } finally {
    asking = undefined
  }
}

/** Whether the server can be reached: a browser tells nobody of a WebSocket whose path is dead. All tabs ask once. */
function isReachable(): Promise<boolean> {
  return (asking ??= ask())
}

const checkInterval = 2_000
/** Silence after which the way to the server is looked at … */
const longestSilence = 20_000
/** … and the same after something was typed. */
const longestEcho = 5_000

/** `path` as the server gives it, relative to its base URL; the address bar and the history never see the ticket. */
function addressOf(path: string, ticket: string, after: number | undefined): string {
  const url = new URL(path.replace(/^\//, ''), document.baseURI)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  url.hash = ''
  url.searchParams.set('ticket', ticket)
  if (after !== undefined) url.searchParams.set('after', String(after))
  return url.href
}

/** One WebSocket of a session (contract §7). A browser tells nobody of one whose path is dead: the server is asked. */
export function openTerminalSocket(path: string, ticket: string, after: number | undefined): TerminalSocket {
  const socket = new WebSocket(addressOf(path, ticket, after), terminalSubprotocol)
  let heardAt = performance.now()
  let typedAt = 0
  let isEnded = false
  let ended: (code: number, reason: string) => void = () => undefined
  const check = setInterval(() => void look(), checkInterval)

  async function look(): Promise<void> {
    const now = performance.now()
    const isSuspicious = now - heardAt > longestSilence || (typedAt > heardAt && now - typedAt > longestEcho)
    if (!isSuspicious || isEnded) return
    if (await isReachable()) {
      heardAt = performance.now()
      typedAt = 0
    } else end(1006, '')
  }
  function end(code: number, reason: string): void {
    if (isEnded) return
    isEnded = true
    clearInterval(check)
    socket.close()
    ended(code, reason)
  }
  return {
    get isOpen() {
      return !isEnded && socket.readyState === WebSocket.OPEN
    },
    // Nobody can be kept from typing or pasting into a page.
    bufferedAmount: 0,
    send(frame, sent) {
      socket.send(frame)
      if (sent !== undefined) typedAt = performance.now()
    },
    close: (code, reason) => socket.close(code === undefined || code >= 3000 ? code : 1000, reason),
    terminate: () => end(1006, ''),
    listen({ message, closed }) {
      ended = closed
      socket.addEventListener('message', ({ data }) => {
        heardAt = performance.now()
        if (!isEnded) message(String(data))
      })
      socket.addEventListener('close', ({ code, reason }) => end(code, reason))
    },
  }
}
