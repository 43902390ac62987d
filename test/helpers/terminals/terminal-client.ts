import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { WebSocket } from 'ws'
import {
  type TerminalMessageType,
  type TerminalPayloads,
  type ToTerminalClient,
  terminalSubprotocol,
} from '../../../src/core/terminals/terminal.ts'
import { Listener } from '../listener.ts'
import type { TestServer } from '../servers/server.ts'

interface ClientOptions {
  /** The admin's by default; null for none. */
  token?: string | null
  /** Query of the URL, without the question mark. */
  query?: string
  /** Whether it requests rsm's subprotocol; true by default. */
  ofOurs?: boolean
  origin?: string
  /** Headers beside the authorization. */
  headers?: Record<string, string>
  /** Whether it acknowledges output automatically; true by default. */
  acknowledges?: boolean
}

/** A client of a terminal session whose frames the test decides. */
export class ScriptedTerminal extends Listener<ToTerminalClient> {
  readonly socket: WebSocket
  readonly closed: Promise<{ code: number; reason: string }>
  /** All output received. */
  text = ''
  /** The sequence of the last output. */
  last = -1
  readonly #sessionId: string
  #ids = 0

  private constructor(server: Pick<TestServer, 'url' | 'token'>, sessionId: string, options: ClientOptions) {
    super()
    const { token = server.token, query, ofOurs = true, origin, headers = {}, acknowledges = true } = options
    const url = `${server.url.replace('http', 'ws')}/ws/terminal/${sessionId}${query ? `?${query}` : ''}`
    this.#sessionId = sessionId
    this.socket = new WebSocket(url, ofOurs ? [terminalSubprotocol] : [], {
      headers: { ...headers, ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
      ...(origin === undefined ? {} : { origin }),
    })
    this.socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as ToTerminalClient
      if (message.type === 'TERMINAL_OUTPUT') {
        this.text += message.payload.data
        // A line of the server itself has no sequence.
        this.last = message.payload.sequence ?? this.last
        if (ofOurs && acknowledges) this.acknowledge(this.last)
      }
      this.hear(message)
    })
    this.socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
  }

  /** Rejects with status and message if the server refuses. */
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

  /** Waits until the output so far ends with this text. */
  shows(end: string): Promise<void> {
    return this.untilHeard(
      () => this.text.endsWith(end),
      () => `not shown: ${end}; but ${JSON.stringify(this.text.slice(-200))}`,
    )
  }

  /** Waits until the output up to this sequence has arrived. */
  has(sequence: number): Promise<void> {
    return this.untilHeard(
      () => this.last >= sequence,
      () => `no output ${sequence}; the last is ${this.last}`,
    )
  }

  /** Cuts the connection as a lost network does. */
  async cut(): Promise<void> {
    this.socket.terminate()
    await this.closed
  }
}
