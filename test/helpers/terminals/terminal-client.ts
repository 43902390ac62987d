import { EventEmitter, once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { WebSocket } from 'ws'
import {
  type TerminalMessageType,
  type TerminalPayloads,
  type ToTerminalClient,
  terminalSubprotocol,
} from '../../../src/core/protocol/terminal-messages.ts'
import type { TestServer } from '../servers/server.ts'

const patience = 60_000

interface ClientOptions {
  /** The admin's by default; null for none. */
  token?: string | null
  /** Of the URL, without the question mark. */
  query?: string
  /** Whether it speaks our subprotocol; true by default. */
  ofOurs?: boolean
  origin?: string
  /** Whether it acknowledges by itself what comes; true by default. */
  acknowledges?: boolean
}

type MessageOf<T extends ToTerminalClient['type']> = Extract<ToTerminalClient, { type: T }>

/** A client of a terminal session whose every frame the test decides. */
export class ScriptedTerminal {
  readonly socket: WebSocket
  readonly heard: ToTerminalClient[] = []
  readonly closed: Promise<{ code: number; reason: string }>
  /** All output that came. */
  text = ''
  /** The sequence of the last output. */
  last = -1
  readonly #sessionId: string
  readonly #unread: ToTerminalClient[] = []
  readonly #arrivals = new EventEmitter()
  #ids = 0

  private constructor(server: Pick<TestServer, 'url' | 'token'>, sessionId: string, options: ClientOptions) {
    const { token = server.token, query, ofOurs = true, origin, acknowledges = true } = options
    const url = `${server.url.replace('http', 'ws')}/ws/terminal/${sessionId}${query ? `?${query}` : ''}`
    this.#sessionId = sessionId
    this.socket = new WebSocket(url, ofOurs ? [terminalSubprotocol] : [], {
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      ...(origin === undefined ? {} : { origin }),
    })
    this.#arrivals.setMaxListeners(100)
    this.socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as ToTerminalClient
      this.heard.push(message)
      this.#unread.push(message)
      if (message.type === 'TERMINAL_OUTPUT') {
        this.text += message.payload.data
        // A line of the server's own has none.
        this.last = message.payload.sequence ?? this.last
        if (ofOurs && acknowledges) this.acknowledge(this.last)
      }
      this.#arrivals.emit('message')
    })
    this.socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
  }

  /** Rejects with status and message when the server refuses. */
  static async attach(
    server: Pick<TestServer, 'url' | 'token'>,
    sessionId: string,
    options: ClientOptions = {},
  ): Promise<ScriptedTerminal> {
    const client = new ScriptedTerminal(server, sessionId, options)
    const refused = once(client.socket, 'unexpected-response').then(async ([, answer]) => {
      const response = answer as IncomingMessage
      const { message } = (await json(response)) as { message: string }
      throw new Error(`refused with ${response.statusCode}: ${message}`)
    })
    await Promise.race([once(client.socket, 'open'), refused])
    return client
  }

  send<T extends TerminalMessageType>(type: T, payload: Omit<TerminalPayloads[T], 'sessionId'>): string {
    const id = `c${this.#ids++}`
    const frame = {
      type,
      id,
      timestamp: new Date().toISOString(),
      payload: { sessionId: this.#sessionId, ...payload },
    }
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame))
    return id
  }

  type(data: string): void {
    this.send('TERMINAL_INPUT', { data })
  }

  acknowledge(sequence: number): void {
    this.send('TERMINAL_ACK', { sequence })
  }

  /** The next message of this type that was not asked for before; those of other types stay. */
  async next<T extends ToTerminalClient['type']>(
    type: T,
    fits: (payload: MessageOf<T>['payload']) => boolean = () => true,
  ): Promise<MessageOf<T>['payload']> {
    const signal = AbortSignal.timeout(patience)
    for (;;) {
      const at = this.#unread.findIndex((message) => message.type === type && fits(message.payload as never))
      if (at >= 0) return this.#unread.splice(at, 1)[0]?.payload as MessageOf<T>['payload']
      await once(this.#arrivals, 'message', { signal }).catch(() => {
        const got = this.heard.map((message) => `${message.type} ${JSON.stringify(message.payload)}`)
        throw new Error(
          `no ${type} within ${patience} ms; heard: ${got.join(', ').slice(0, 2000) || 'nothing'}`,
        )
      })
    }
  }

  /** Waits until the output so far ends with this. */
  async shows(end: string): Promise<void> {
    const signal = AbortSignal.timeout(patience)
    while (!this.text.endsWith(end))
      await once(this.#arrivals, 'message', { signal }).catch(() => {
        throw new Error(`not shown: ${end}; but ${JSON.stringify(this.text.slice(-200))}`)
      })
  }

  /** Waits until the output up to this sequence has come. */
  async has(sequence: number): Promise<void> {
    const signal = AbortSignal.timeout(patience)
    while (this.last < sequence)
      await once(this.#arrivals, 'message', { signal }).catch(() => {
        throw new Error(`no output ${sequence}; the last is ${this.last}`)
      })
  }

  /** Cuts the connection as a lost network does. */
  async cut(): Promise<void> {
    this.socket.terminate()
    await this.closed
  }
}
