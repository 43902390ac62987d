import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import type { AgentConfig, HeartbeatRequest, MetricsRequest } from '../../../src/core/protocol/http/agent.ts'
import type {
  AgentHello,
  ExecuteScript,
  FromAgent,
  Payloads,
  ScriptComplete,
  ScriptOutput,
  TerminalOpen,
} from '../../../src/core/protocol/messages.ts'
import { type SignedType, signedBytes } from '../../../src/core/protocol/orders.ts'
import { patience } from '../patience.ts'
import { onSteadyPort } from './steady-port.ts'

interface Heard {
  chunks: Map<number, ScriptOutput>
  /** Every SCRIPT_OUTPUT as it arrived, including repeats. */
  frames: ScriptOutput[]
  completes: ScriptComplete[]
}

interface Reply {
  status: number
  message?: string
  data?: object
}

function newKey(keyId: string): { keyId: string; privateKey: KeyObject; serverKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const serverKey = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
  return { keyId, privateKey, serverKey }
}

/** The server as an agent needs it: registers it, counts heartbeats, stores and acknowledges output, signs its messages. */
export class FakeServer {
  readonly #events = new EventEmitter()
  readonly #http: http.Server
  readonly #wss: WebSocketServer
  #key = newKey('k1')
  readonly heard: Map<string, Heard> = new Map()
  readonly hellos: AgentHello[] = []
  readonly heartbeats: HeartbeatRequest[] = []
  readonly metrics: MetricsRequest[] = []
  readonly errors: Payloads['ERROR'][] = []
  readonly messages: FromAgent[] = []
  registrations = 0
  /** Options that a test may change at any time. */
  acksOutput = true
  acksComplete = true
  acksTerminals = true
  clockSkew = 0
  intervals = { heartbeatInterval: 30, metricsInterval: 60 }
  pendingTasks: AgentConfig['pendingTasks'] = []
  /** False: answers to heartbeats have no count of pending tasks, as from a server without its store. */
  countsPending = true
  configVersion = 1
  logLevel: AgentConfig['logLevel'] = 'INFO'
  /** The status that refuses a WebSocket, as from a proxy without support for them. */
  refusesLinks: number | null = null
  /** Headers of refused WebSockets, and of all other answers. */
  headers: Record<string, string> = {}
  /** Handles requests whose bodies are not JSON; true if it did. */
  takes: ((request: http.IncomingMessage, response: http.ServerResponse) => boolean) | undefined
  intercept: ((path: string, body: unknown) => Reply | 'drop' | undefined) | undefined
  socket: WebSocket | null = null
  #ids = 0

  private constructor() {
    this.#events.setMaxListeners(100)
    this.#http = http.createServer((request, response) => this.#answer(request, response))
    this.#wss = new WebSocketServer({
      server: this.#http,
      handleProtocols: () => 'rsm.1',
      verifyClient: (
        _,
        settle: (accepted: boolean, status: number, name?: string, headers?: Record<string, string>) => void,
      ) => settle(this.refusesLinks === null, this.refusesLinks ?? 101, undefined, this.headers),
    })
    this.#wss.on('connection', (socket) => {
      this.socket = socket
      socket.on('message', (data: Buffer) => this.#receive(socket, JSON.parse(data.toString()) as FromAgent))
      socket.on('close', () => {
        if (this.socket === socket) this.socket = null
        this.#events.emit('change')
      })
    })
  }

  static async start(port?: number): Promise<FakeServer> {
    if (port === undefined) return onSteadyPort((steady) => FakeServer.start(steady))
    const server = new FakeServer()
    server.#http.listen(port, '127.0.0.1')
    await once(server.#http, 'listening')
    return server
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async close(): Promise<void> {
    for (const client of this.#wss.clients) client.terminate()
    this.#http.closeAllConnections()
    await new Promise<void>((resolve) => this.#http.close(() => resolve()))
  }

  /** Settles when the condition holds; checked after each message of the agent. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const signal = AbortSignal.timeout(patience)
    while (!condition()) {
      try {
        await once(this.#events, 'change', { signal })
      } catch {
        throw new Error(`timed out waiting for: ${what}`)
      }
    }
  }

  linked(count = 1): Promise<void> {
    return this.until(() => this.hellos.length >= count && this.socket !== null, `HELLO number ${count}`)
  }

  async completed(taskId: string): Promise<ScriptComplete> {
    await this.until(() => (this.heard.get(taskId)?.completes.length ?? 0) > 0, `${taskId} is complete`)
    const [complete] = this.of(taskId).completes
    if (!complete) throw new Error('no result')
    return complete
  }

  of(taskId: string): Heard {
    let heard = this.heard.get(taskId)
    if (!heard) {
      heard = { chunks: new Map(), frames: [], completes: [] }
      this.heard.set(taskId, heard)
    }
    return heard
  }

  text(taskId: string, stream: 'stdout' | 'stderr' = 'stdout'): string {
    const chunks = [...this.of(taskId).chunks.values()].sort((a, b) => a.sequence - b.sequence)
    return chunks
      .filter((chunk) => chunk.stream === stream)
      .map((chunk) => chunk.data)
      .join('')
  }

  request(
    agentId: string,
    request: Partial<ExecuteScript> & { taskId: string },
    validFor = 300_000,
  ): ExecuteScript {
    const payload = {
      script: 'true',
      timeout: 60,
      params: {},
      scriptType: 'BASH' as const,
      maxOutputBytes: 64 * 1024 * 1024,
      expiry: new Date(Date.now() + this.clockSkew + validFor).toISOString(),
      keyId: this.#key.keyId,
      signature: '',
      ...request,
    }
    payload.signature = this.#sign('EXECUTE_SCRIPT', agentId, payload)
    return payload
  }

  /** A signed TERMINAL_OPEN of 80 columns and 24 rows with `sh`, over the current link; omits the named fields. */
  terminalOpen(
    agentId: string,
    request: Partial<TerminalOpen> & { sessionId: string },
    without: readonly 'shell'[] = [],
  ): TerminalOpen {
    const payload: TerminalOpen = {
      cols: 80,
      rows: 24,
      shell: 'sh',
      expiry: new Date(Date.now() + this.clockSkew + 300_000).toISOString(),
      keyId: this.#key.keyId,
      linkId: this.hellos.at(-1)?.linkId ?? '',
      signature: '',
      ...request,
    }
    for (const name of without) delete payload[name]
    payload.signature = this.#sign('TERMINAL_OPEN', agentId, payload)
    return payload
  }

  #sign(type: SignedType, agentId: string, payload: object): string {
    return sign(null, signedBytes(type, agentId, payload), this.#key.privateKey).toString('base64')
  }

  /** Signs with another key from now on; an agent learns it when it registers again. */
  changeKey(keyId: string): void {
    this.#key = newKey(keyId)
  }

  send(type: string, payload: object): void {
    this.#ids += 1
    this.sendText(JSON.stringify({ type, id: `s${this.#ids}`, timestamp: new Date().toISOString(), payload }))
  }

  sendText(text: string): void {
    this.socket?.send(text)
  }

  execute(agentId: string, request: Partial<ExecuteScript> & { taskId: string }): void {
    this.of(request.taskId)
    this.send('EXECUTE_SCRIPT', this.request(agentId, request))
  }

  /** Sends the agent a signed order to copy files to its host or from it. */
  order<T extends 'COPY_FILE' | 'FETCH_FILE'>(
    type: T,
    agentId: string,
    order: Omit<Payloads[T], 'timeout' | 'maxOutputBytes'> & { timeout?: number },
  ): void {
    this.of(order.taskId)
    const payload = {
      timeout: 60,
      maxOutputBytes: 1_000_000,
      expiry: new Date(Date.now() + this.clockSkew + 300_000).toISOString(),
      keyId: this.#key.keyId,
      ...order,
    }
    this.send(type, { ...payload, signature: this.#sign(type, agentId, payload) })
  }

  /** Highest sequence without a gap before it. */
  stored(taskId: string): number {
    const { chunks } = this.of(taskId)
    let sequence = -1
    while (chunks.has(sequence + 1)) sequence += 1
    return sequence
  }

  #receive(socket: WebSocket, message: FromAgent): void {
    this.messages.push(message)
    if (message.type === 'AGENT_HELLO') {
      this.hellos.push(message.payload)
      for (const { taskId } of message.payload.tasks)
        if (this.heard.has(taskId)) this.send('SCRIPT_ACK', { taskId, sequence: this.stored(taskId) })
    } else if (message.type === 'SCRIPT_OUTPUT') {
      const { taskId, sequence } = message.payload
      const heard = this.heard.get(taskId)
      if (!heard) this.send('ERROR', { code: 404, message: 'unknown task', refId: message.id })
      heard?.frames.push(message.payload)
      if (heard && !heard.chunks.has(sequence)) heard.chunks.set(sequence, message.payload)
      if (this.acksOutput && heard && this.socket === socket)
        this.send('SCRIPT_ACK', { taskId, sequence: this.stored(taskId) })
    } else if (message.type === 'SCRIPT_COMPLETE') {
      const { taskId } = message.payload
      if (!this.heard.has(taskId))
        this.send('ERROR', { code: 404, message: 'unknown task', refId: message.id })
      this.heard.get(taskId)?.completes.push(message.payload)
      if (this.acksComplete && this.heard.has(taskId)) this.send('SCRIPT_ACK', { taskId, complete: true })
    } else if (message.type === 'TERMINAL_OUTPUT') {
      const { sessionId, sequence } = message.payload
      if (this.acksTerminals && this.socket === socket) this.send('TERMINAL_ACK', { sessionId, sequence })
    } else if (message.type === 'ERROR') this.errors.push(message.payload)
    this.#events.emit('change')
  }

  #answer(request: http.IncomingMessage, response: http.ServerResponse): void {
    if (this.takes?.(request, response)) return
    let text = ''
    request.on('data', (piece: Buffer) => {
      text += piece.toString()
    })
    request.on('end', () => {
      const path = (request.url ?? '').split('?')[0] ?? ''
      const body: unknown = text ? JSON.parse(text) : {}
      if (path === '/api/agent/register') this.registrations += 1
      const reply = this.intercept?.(path, body) ?? this.#reply(path, body)
      if (reply === 'drop') request.socket.destroy()
      else {
        response.writeHead(reply.status, { 'content-type': 'application/json', ...this.headers })
        response.end(JSON.stringify({ code: reply.status, message: reply.message ?? 'ok', data: reply.data }))
      }
      this.#events.emit('change')
    })
  }

  #reply(path: string, body: unknown): Reply {
    const serverTime = new Date(Date.now() + this.clockSkew).toISOString()
    const pendingTasks = this.countsPending ? this.pendingTasks.length : 0
    const ack = { serverTime, configVersion: this.configVersion, pendingTasks }
    if (path === '/api/agent/register') {
      const { serverKey, keyId } = this.#key
      return {
        status: 200,
        data: { hostId: 7, token: 'rsm_agt_test', ...this.intervals, serverKey, keyId, serverTime },
      }
    }
    if (path === '/api/agent/heartbeat') this.heartbeats.push(body as HeartbeatRequest)
    else if (path === '/api/agent/metrics') this.metrics.push(body as MetricsRequest)
    else if (path === '/api/agent/config') {
      const { configVersion, pendingTasks, logLevel } = this
      return { status: 200, data: { ...this.intervals, logLevel, configVersion, pendingTasks } }
    } else return { status: 404, message: 'no such path' }
    return { status: 200, data: ack }
  }
}
