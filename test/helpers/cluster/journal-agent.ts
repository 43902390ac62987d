import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { AgentHello, FromServer, Payloads } from '../../../src/core/protocol/messages.ts'
import { subprotocol } from '../../../src/core/protocol/wire-text.ts'
import type { Ending } from '../agents/agent.ts'
import type { Identity } from '../agents/scripted-agent.ts'
import type { TestServer } from '../servers/server.ts'

/** A script of these agents: the number of pieces in its output, and its exit code. */
export interface Saying {
  pieces: number
  exitCode: number
}

interface Journaled extends Saying {
  taskId: string
  /** Pieces written so far. */
  said: number
  isEnded: boolean
  /** Next piece to send over the current link; null until the server acknowledges a sequence. */
  next: number | null
}

export const textOf = (taskId: string, hostId: number, piece: number): string =>
  `${taskId} of ${hostId}: piece ${piece}\n`

/**
 * An agent that implements the rsm protocol without processes and disk: it keeps unacknowledged output, lists it in each HELLO
 * and sends it again. It drops executions in its journal, which holds everything that the server has not released. It lives as
 * long as the test, so that none of its executions may be LOST.
 */
export class JournalAgent {
  readonly identity: Identity
  /** Received execution frames, and those of them that the journal knew. */
  frames = 0
  dropped = 0
  /** Starts by task: more than one is the fault that these tests look for. */
  readonly starts = new Map<string, number>()
  /** Longest pause between two pieces, in milliseconds. */
  readonly #pace: number
  readonly #url: string
  readonly #instanceId = randomUUID()
  readonly #storeId = randomUUID()
  readonly #journal = new Map<string, Journaled>()
  #sequence = 0
  #mark: AgentHello['mark']
  #socket: WebSocket | null = null
  #ids = 0
  #isStopped = false

  constructor(url: string, identity: Identity, pace: number) {
    this.identity = identity
    this.#url = url
    this.#pace = pace
  }

  /** Executions whose end no server has acknowledged. */
  get open(): number {
    return this.#journal.size
  }

  /** Keeps a link up from now on; links again shortly after each end. */
  async run(): Promise<void> {
    void this.#beat()
    while (!this.#isStopped) {
      await this.#link()
      await delay(50 + Math.random() * 150)
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#socket?.terminate()
  }

  async #beat(): Promise<void> {
    while (!this.#isStopped) {
      const { agentId, token } = this.identity
      const body = { agentId, status: 'HEALTHY' }
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      await fetch(`${this.#url}/api/agent/heartbeat`, { method: 'POST', headers, body: JSON.stringify(body) })
        .then((response) => response.arrayBuffer())
        .catch(() => undefined)
      await delay(20_000, undefined, { ref: false })
    }
  }

  #link(): Promise<void> {
    const { agentId, token } = this.identity
    const socket = new WebSocket(`${this.#url.replace('http', 'ws')}/ws/agent/${agentId}`, subprotocol, {
      headers: { authorization: `Bearer ${token}` },
      perMessageDeflate: false,
      handshakeTimeout: 10_000,
    })
    this.#socket = socket
    for (const one of this.#journal.values()) one.next = null
    socket.on('open', () => this.#hello())
    socket.on('message', (data: Buffer) => this.#hear(JSON.parse(data.toString()) as FromServer))
    socket.on('error', () => undefined)
    return new Promise((resolve) => {
      socket.on('close', () => resolve())
    })
  }

  #hello(): void {
    const tasks = [...this.#journal.values()].map(({ taskId, isEnded, said }) => ({
      taskId,
      state: isEnded ? 'EXITED' : 'RUNNING',
      lastSequence: said - 1,
    }))
    this.#send('AGENT_HELLO', {
      agentVersion: 'test',
      storeId: this.#storeId,
      instanceId: this.#instanceId,
      journal: { sequence: this.#sequence },
      ...(this.#mark === undefined ? {} : { mark: this.#mark }),
      capabilities: {
        maxExecutions: 64,
        scriptTypes: ['BASH'],
        containment: 'process-group',
        terminal: false,
      },
      tasks,
    })
  }

  #hear(message: FromServer): void {
    if (message.type === 'EXECUTE_SCRIPT') this.#execute(message.payload)
    if (message.type === 'SCRIPT_ACK') this.#acknowledged(message.payload)
  }

  #execute({ taskId, script, mark }: Payloads['EXECUTE_SCRIPT']): void {
    this.frames += 1
    if (mark) this.#mark = mark
    if (this.#journal.has(taskId)) {
      this.dropped += 1
      return
    }
    this.starts.set(taskId, (this.starts.get(taskId) ?? 0) + 1)
    this.#sequence += 1
    const saying = JSON.parse(script) as Saying
    const one: Journaled = { ...saying, taskId, said: 0, isEnded: false, next: 0 }
    this.#journal.set(taskId, one)
    this.#send('SCRIPT_RECEIVED', { taskId, journal: { sequence: this.#sequence } })
    void this.#say(one)
  }

  async #say(one: Journaled): Promise<void> {
    while (one.said < one.pieces) {
      await delay(Math.random() * this.#pace)
      one.said += 1
      this.#flush(one)
    }
    one.isEnded = true
    this.#flush(one)
  }

  #acknowledged({ taskId, sequence, complete }: Payloads['SCRIPT_ACK']): void {
    const one = this.#journal.get(taskId)
    if (!one) return
    if (complete) this.#journal.delete(taskId)
    else if (one.next === null && sequence !== undefined) {
      one.next = sequence + 1
      this.#flush(one)
    }
  }

  /** Sends output that was not sent over this link yet. */
  #flush(one: Journaled): void {
    if (one.next === null) return
    const { taskId } = one
    for (; one.next < one.said; one.next += 1)
      this.#send('SCRIPT_OUTPUT', {
        taskId,
        stream: 'stdout',
        sequence: one.next,
        data: textOf(taskId, this.identity.hostId, one.next),
      })
    if (!one.isEnded) return
    const at = new Date().toISOString()
    this.#send('SCRIPT_COMPLETE', {
      taskId,
      exitCode: one.exitCode,
      duration: 1,
      startedAt: at,
      completedAt: at,
      status: one.exitCode === 0 ? 'SUCCESS' : 'FAILED',
      lastSequence: one.pieces - 1,
    })
  }

  #send<T extends keyof Payloads>(type: T, payload: Payloads[T]): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return
    const id = `m${this.#ids++}`
    this.#socket.send(JSON.stringify({ type, id, timestamp: new Date().toISOString(), payload }))
  }
}

/** Enrolls `count` agents at a server; they link on their own. */
export async function journalAgents(
  t: Ending,
  server: TestServer,
  { count, pace }: { count: number; pace: number },
): Promise<JournalAgent[]> {
  const agents: JournalAgent[] = []
  for (let n = 1; n <= count; n += 1) {
    const agent = new JournalAgent(server.url, await server.enroll(`web${n}`), pace)
    t.teardown(() => agent.stop())
    void agent.run()
    agents.push(agent)
  }
  return agents
}
