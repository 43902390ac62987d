import { once } from 'node:events'
import { WebSocket } from 'ws'
import {
  type AgentHello,
  type CopyFile,
  type ExecuteScript,
  type FetchFile,
  type FromServer,
  type Payloads,
  type ScriptComplete,
} from '../../../src/core/protocol/messages.ts'
import { subprotocol } from '../../../src/core/protocol/wire-text.ts'
import { sendBytes, sha256Of } from '../clients/files.ts'
import { Listener } from '../listener.ts'
import type { TestServer } from '../servers/server.ts'

export interface Identity {
  hostId: number
  agentId: string
  token: string
}

interface LinkOptions {
  /** Null for a base-protocol agent: no subprotocol, no HELLO. */
  storeId?: string | null
  maxExecutions?: number
  /** Instance id of the process, sent with the end of its journal; omitted as by 0.1.0. */
  instanceId?: string
  journal?: AgentHello['journal']
  mark?: AgentHello['mark']
  linkId?: string
  tasks?: AgentHello['tasks']
  terminals?: AgentHello['terminals']
  agentVersion?: string
  /** Capabilities in its HELLO beside those of every rsm agent. */
  capabilities?: Partial<AgentHello['capabilities']>
  /** False to open the link without a HELLO. */
  hello?: boolean
  /** False to answer pings only when the test calls `pong`. */
  pongs?: boolean
}

/** One link of an agent whose frames the test decides; messages of the server are kept until the test asks for them. */
export class ScriptedAgent extends Listener<FromServer> {
  readonly socket: WebSocket
  /** Resolves when the link is closed. */
  readonly closed: Promise<{ code: number; reason: string }>
  #ids = 0
  readonly #pinged: Promise<Buffer>

  private constructor(url: string, token: string, { storeId = 'store-1', pongs = true }: LinkOptions) {
    super()
    this.socket = new WebSocket(url, storeId === null ? [] : [subprotocol], {
      headers: { authorization: `Bearer ${token}` },
      autoPong: pongs,
    })
    this.#pinged = once(this.socket, 'ping').then(([data]) => data as Buffer)
    this.socket.on('message', (data: Buffer) => {
      this.hear(JSON.parse(data.toString()) as FromServer)
    })
    this.socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
  }

  /**
   * Opens the link, sends HELLO unless it is a base-protocol agent, and answers the first ping. Rejects if the upgrade is
   * refused.
   */
  static async link(
    server: Pick<TestServer, 'url'>,
    { agentId, token }: Identity,
    options: LinkOptions = {},
  ): Promise<ScriptedAgent> {
    const { storeId = 'store-1', hello = true, pongs = true } = options
    const url = `${server.url.replace('http', 'ws')}/ws/agent/${agentId}`
    const agent = new ScriptedAgent(url, token, options)
    const refused = once(agent.socket, 'unexpected-response').then(([, response]) => {
      throw new Error(`refused with ${(response as { statusCode: number }).statusCode}`)
    })
    await Promise.race([once(agent.socket, 'open'), refused])
    if (storeId !== null && hello) agent.hello(storeId, options)
    // By then the pong was sent, so the next request to the server finds the link up.
    if (pongs) await Promise.race([agent.#pinged, agent.closed])
    return agent
  }

  hello(
    storeId: string,
    { maxExecutions = 16, tasks = [], terminals, capabilities = {}, ...more }: LinkOptions = {},
  ): void {
    const { instanceId, journal, mark, linkId, agentVersion = 'test' } = more
    this.send('AGENT_HELLO', {
      agentVersion,
      storeId,
      ...(instanceId === undefined ? {} : { instanceId }),
      ...(journal === undefined ? {} : { journal }),
      ...(mark === undefined ? {} : { mark }),
      ...(linkId === undefined ? {} : { linkId }),
      capabilities: {
        maxExecutions,
        scriptTypes: ['BASH'],
        containment: 'process-group',
        terminal: false,
        ...capabilities,
      },
      tasks,
      ...(terminals === undefined ? {} : { terminals }),
    })
  }

  /** Returns the id of the frame. */
  send<T extends keyof Payloads>(type: T, payload: Payloads[T]): string {
    const id = `m${this.#ids++}`
    this.socket.send(JSON.stringify({ type, id, timestamp: new Date().toISOString(), payload }))
    return id
  }

  /** Answers the first ping of the server. */
  async pong(): Promise<void> {
    this.socket.pong(await this.#pinged)
  }

  execution(taskId?: string): Promise<ExecuteScript> {
    return this.next('EXECUTE_SCRIPT', (payload) => taskId === undefined || payload.taskId === taskId)
  }

  /** Reports that an execution is in its journal, which now ends at this sequence. */
  received(taskId: string, sequence: number): void {
    this.send('SCRIPT_RECEIVED', { taskId, journal: { sequence } })
  }

  /** Waits until output up to `sequence` is acknowledged. */
  acknowledged(taskId: string, sequence: number): Promise<unknown> {
    return this.next('SCRIPT_ACK', (ack) => ack.taskId === taskId && (ack.sequence ?? -2) >= sequence)
  }

  /** Waits until the end is acknowledged. */
  released(taskId: string): Promise<unknown> {
    return this.next('SCRIPT_ACK', (ack) => ack.taskId === taskId && ack.complete === true)
  }

  output(taskId: string, sequence: number, data: string, stream: 'stdout' | 'stderr' = 'stdout'): void {
    this.send('SCRIPT_OUTPUT', { taskId, stream, data, sequence })
  }

  complete(taskId: string, exitCode = 0, more: Partial<ScriptComplete> = {}): void {
    const now = new Date().toISOString()
    this.send('SCRIPT_COMPLETE', {
      taskId,
      exitCode,
      duration: 5,
      startedAt: now,
      completedAt: now,
      ...more,
    })
  }

  /**
   * Proves that the server has processed every frame sent so far: it handles frames in order, and answers the unknown type of
   * this one.
   */
  async settled(): Promise<void> {
    const id = `probe${this.#ids++}`
    this.socket.send(JSON.stringify({ type: 'PROBE', id, timestamp: '', payload: {} }))
    await this.next('ERROR', ({ refId }) => refId === id)
  }

  /** Cuts the link as a lost network does; resolves when it is closed. */
  async cut(): Promise<void> {
    this.socket.terminate()
    await this.closed
  }

  /** Runs every execution: `run` returns exit code and output. */
  serve(run: (execution: ExecuteScript) => { exitCode?: number; output?: string } = () => ({})): void {
    this.socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as FromServer
      if (message.type !== 'EXECUTE_SCRIPT') return
      const { exitCode = 0, output } = run(message.payload)
      if (output !== undefined) this.output(message.payload.taskId, 0, output)
      this.complete(message.payload.taskId, exitCode, { lastSequence: output === undefined ? -1 : 0 })
    })
  }

  /** Reports every copy as done, and sends a file or an empty tree for every fetch; `endOf` returns further fields of the end. */
  serveCopies(
    { url }: Pick<TestServer, 'url'>,
    { token }: Identity,
    endOf: (order: CopyFile | FetchFile) => Partial<ScriptComplete> = () => ({}),
  ): void {
    this.socket.on('message', (data: Buffer) => {
      const { type, payload } = JSON.parse(data.toString()) as FromServer
      if (type !== 'COPY_FILE' && type !== 'FETCH_FILE') return
      const { taskId } = payload
      const { exitCode = 0, ...more } = endOf(payload)
      const end = (done = {}) => this.complete(taskId, exitCode, { lastSequence: -1, ...done, ...more })
      if (exitCode !== 0) return end()
      if (type === 'COPY_FILE') return end({ changed: true })
      const bytes = payload.fetch.kind === 'FILE' ? Buffer.from('hello\n') : Buffer.alloc(1024)
      const query = `offset=0&end=true&sha256=${sha256Of(bytes)}`
      void sendBytes({ url, token }, 'PUT', `/api/agent/tasks/${taskId}/file?${query}`, bytes).then(() =>
        end(),
      )
    })
  }

  /** Opens every requested terminal. */
  serveTerminals(): void {
    this.socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as FromServer
      if (message.type === 'TERMINAL_OPEN')
        this.send('TERMINAL_OPENED', { sessionId: message.payload.sessionId })
    })
  }
}
