import type { TerminalClosed, TerminalOpen, TerminalOutput } from '../../../src/core/protocol/messages.ts'
import type { FakeServer } from '../servers/fake-server.ts'

let sessions = 0

/** The server's side of one terminal session, with everything that the agent sent about it. */
export class LiveTerminal {
  readonly sessionId: string
  readonly #server: FakeServer
  readonly #agentId: string

  constructor(server: FakeServer, agentId: string, sessionId?: string) {
    sessions += 1
    this.sessionId = sessionId ?? `s${sessions}`
    this.#server = server
    this.#agentId = agentId
  }

  /** Opens the session, or resumes it with `after`; settles when the agent has answered. */
  async open(request: Partial<TerminalOpen> = {}): Promise<this> {
    const answers = () => this.#answers()
    const before = answers()
    this.#server.send(
      'TERMINAL_OPEN',
      this.#server.terminalOpen(this.#agentId, { sessionId: this.sessionId, ...request }),
    )
    await this.#server.until(() => answers() > before, `${this.sessionId} is answered`)
    return this
  }

  type(data: string): void {
    this.#server.send('TERMINAL_INPUT', { sessionId: this.sessionId, data })
  }

  resize(cols: number, rows: number): void {
    this.#server.send('TERMINAL_RESIZE', { sessionId: this.sessionId, cols, rows })
  }

  acknowledge(sequence: number): void {
    this.#server.send('TERMINAL_ACK', { sessionId: this.sessionId, sequence })
  }

  close(): void {
    this.#server.send('TERMINAL_CLOSE', { sessionId: this.sessionId })
  }

  /** In order of arrival, including repeats. */
  frames(): TerminalOutput[] {
    return this.#server.messages.flatMap((message) =>
      message.type === 'TERMINAL_OUTPUT' && message.payload.sessionId === this.sessionId
        ? [message.payload]
        : [],
    )
  }

  /** In order, each frame once. */
  text(): string {
    const bySequence = new Map(this.frames().map((frame) => [frame.sequence ?? 0, frame.data]))
    return [...bySequence]
      .sort(([a], [b]) => a - b)
      .map(([, data]) => data)
      .join('')
  }

  /** Waits until a pattern is shown; returns the whole text. */
  async shows(what: RegExp): Promise<string> {
    try {
      await this.#server.until(() => what.test(this.text()), `${this.sessionId} shows ${what}`)
    } catch (cause) {
      const told = JSON.stringify([this.text().slice(-1000), this.ends()])
      throw new Error(`${this.sessionId} did not show ${what}, but ${told}`, { cause })
    }
    return this.text()
  }

  ends(): TerminalClosed[] {
    return this.#server.messages.flatMap((message) =>
      message.type === 'TERMINAL_CLOSED' && message.payload.sessionId === this.sessionId
        ? [message.payload]
        : [],
    )
  }

  async ended(): Promise<TerminalClosed> {
    await this.#server.until(() => this.ends().length > 0, `${this.sessionId} ends`)
    const [end] = this.ends()
    if (!end) throw new Error('no end')
    return end
  }

  #answers(): number {
    return this.#server.messages.filter(
      ({ type, payload }) =>
        (type === 'TERMINAL_OPENED' || type === 'TERMINAL_CLOSED') && payload.sessionId === this.sessionId,
    ).length
  }
}

/** A session that runs a command, from its start to its end. */
export async function ranOnTerminal(
  server: FakeServer,
  agentId: string,
  request: Partial<TerminalOpen>,
): Promise<{ text: string; end: TerminalClosed }> {
  const session = await new LiveTerminal(server, agentId).open(request)
  const end = await session.ended()
  return { text: session.text(), end }
}
