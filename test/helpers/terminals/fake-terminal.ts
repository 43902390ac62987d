import { EventEmitter, once } from 'node:events'
import type { ExecutionContext } from 'ava'
import { type WebSocket, WebSocketServer } from 'ws'
import {
  type FromTerminalClient,
  type ToTerminalClient,
  terminalSubprotocol,
} from '../../../src/core/terminals/terminal.ts'
import { type FakeServer, hostNamed, pageOf, startFakeServer } from '../../fixtures/fake-server.ts'

export const sessionId = 'session-1'

type ToClient = ToTerminalClient['type']
type Sent<T extends ToClient> = Omit<Extract<ToTerminalClient, { type: T }>['payload'], 'sessionId'>

/** One connection of a client to the session, controlled by a test. */
export interface FakeAttachment {
  readonly query: URLSearchParams
  readonly authorization: string | undefined
  readonly socket: WebSocket
  send<T extends ToClient>(type: T, payload: Sent<T>): void
  attached(more?: Partial<Sent<'TERMINAL_ATTACHED'>>): void
  /** The next message of this type that the test has not read yet. */
  next(type: FromTerminalClient['type']): Promise<any>
  /** All input, until it ends with this text. */
  inputTo(end: string): Promise<string>
}

export interface FakeTerminal extends FakeServer {
  /** The next connection. */
  client(): Promise<FakeAttachment>
  /** Statuses that refuse the next upgrades. */
  readonly refusals: number[]
}

function attachmentOf(socket: WebSocket, url: URL, authorization: string | undefined): FakeAttachment {
  const waiting: FromTerminalClient[] = []
  const news = new EventEmitter()
  let frames = 0
  socket.on('error', () => {})
  socket.on('message', (data: Buffer) => {
    waiting.push(JSON.parse(data.toString('utf8')) as FromTerminalClient)
    news.emit('message')
  })
  const attachment: FakeAttachment = {
    query: url.searchParams,
    authorization,
    socket,
    send(type, payload) {
      frames++
      const timestamp = new Date().toISOString()
      socket.send(JSON.stringify({ type, id: `s${frames}`, timestamp, payload: { sessionId, ...payload } }))
    },
    attached(more = {}) {
      const about = { hostname: 'web1', cols: 80, rows: 24, after: -1, last: -1, omitted: 0, recorded: true }
      attachment.send('TERMINAL_ATTACHED', { ...about, watching: false, watchers: [], ...more })
    },
    async next(type) {
      for (;;) {
        const at = waiting.findIndex((message) => message.type === type)
        if (at !== -1) return waiting.splice(at, 1)[0]?.payload
        await once(news, 'message')
      }
    },
    async inputTo(end) {
      let input = ''
      while (!input.endsWith(end)) input += (await attachment.next('TERMINAL_INPUT')).data
      return input
    },
  }
  return attachment
}

/** A server with one host and one terminal session, whose frames the test decides. */
export async function startFakeTerminal(
  t: Pick<ExecutionContext, 'teardown'>,
  routes: Parameters<typeof startFakeServer>[1] = {},
): Promise<FakeTerminal> {
  const fake = await startFakeServer(t, {
    'GET /api/hosts': () => pageOf([hostNamed(1, 'web1')]),
    'POST /api/terminals': () => ({ sessionId, ticket: 'x', path: '', expiresAt: '' }),
    [`DELETE /api/terminals/${sessionId}`]: () => ({ sessionId }),
    ...routes,
  })
  const clients: FakeAttachment[] = []
  const refusals: number[] = []
  const news = new EventEmitter()
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => (offered.has(terminalSubprotocol) ? terminalSubprotocol : false),
  })
  fake.http.on('upgrade', (request, stream, head) => {
    const status = refusals.shift()
    // A refused client may close before it has read the reason.
    stream.on('error', () => stream.destroy())
    if (status !== undefined) {
      const body = JSON.stringify({ code: status, message: `refused with ${status}` })
      stream.end(`HTTP/1.1 ${status} No\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      return
    }
    sockets.handleUpgrade(request, stream, head, (socket) => {
      const url = new URL(request.url ?? '/', 'http://fake')
      clients.push(attachmentOf(socket, url, request.headers.authorization))
      news.emit('client')
    })
  })
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
  })
  return {
    ...fake,
    refusals,
    async client() {
      for (;;) {
        const client = clients.shift()
        if (client !== undefined) return client
        await once(news, 'client')
      }
    },
  }
}
