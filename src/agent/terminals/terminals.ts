import type { AgentHello, Payloads, TerminalOpen } from '../../core/protocol/messages.ts'
import type { RunnerOptions } from '../executions/runner-options.ts'
import { isTooOld } from '../link/verify.ts'
import { PastSessions } from './past-sessions.ts'
import type { PtyHost } from './pty-host.ts'
import type { Session, SessionOptions } from './session.ts'
import { Undecided } from './undecided.ts'

/** Sessions at once. */
const mostSessions = 64
/** Milliseconds for which a session waits for a link that takes it up: the server waits for 60 s. */
const longestAbsence = 75_000
/** Milliseconds for which the end of a session is told over every new link. */
const endKept = 60_000

type Outgoing = 'TERMINAL_OPENED' | 'TERMINAL_OUTPUT' | 'TERMINAL_CLOSED' | 'ERROR'

/** The way to the server while it stands. */
export interface TerminalSending {
  send<T extends Outgoing>(type: T, payload: Payloads[T]): void
  /** False while too much waits in the socket; `Terminals.turn` is called when there is room again. */
  hasRoom(): boolean
}

export interface TerminalsOptions
  extends Omit<SessionOptions, 'host'>,
    Pick<RunnerOptions, 'clock' | 'verify' | 'distrusted' | 'hearServerTime'> {
  /** Why there is no terminal here, null where there is. */
  readonly lack: string | null
  /** The number of sessions has changed. */
  readonly changed: () => void
}

interface Loaded {
  readonly Session: typeof Session
  readonly host: PtyHost
}

/** What an agent that never had a session does not carry. */
async function loadSessions(): Promise<Loaded> {
  const [{ Session }, { PtyHost }] = await Promise.all([import('./session.ts'), import('./pty-host.ts')])
  return { Session, host: new PtyHost() }
}

/** The sessions of this host: opened, typed into and taken up only by who signs as its server (contract §6, §7). */
export class Terminals {
  readonly #options: TerminalsOptions
  readonly #sessions = new Map<string, Session>()
  #loaded: Loaded | null = null
  readonly #past = new PastSessions()
  readonly #timers = new Map<string, () => void>()
  readonly #undecided = new Undecided()
  #sending: TerminalSending | null = null
  #isStopped = false
  #whenEmpty: (() => void) | undefined

  constructor(options: TerminalsOptions) {
    this.#options = options
  }

  /** Whether this host opens any. */
  get isAvailable(): boolean {
    return this.#options.lack === null
  }

  /** Those that run. */
  get size(): number {
    return [...this.#sessions.values()].filter(({ closed }) => closed === null).length
  }

  /** Whether none runs, and no end waits to be told. */
  get isIdle(): boolean {
    return [...this.#sessions.values()].every(({ isCloseSent }) => isCloseSent)
  }

  /** A link stands: names all sessions; each waits for its TERMINAL_OPEN. */
  begin(sending: TerminalSending): NonNullable<AgentHello['terminals']> {
    this.#sending = sending
    return [...this.#sessions.values()].map(({ sessionId, frames }) => ({
      sessionId,
      lastSequence: frames.last,
    }))
  }

  /** The link is gone. */
  end(): void {
    this.#sending = null
    for (const session of this.#sessions.values()) {
      if (!session.isAttached) continue
      session.isAttached = false
      if (session.closed === null) this.#awaitLink(session)
    }
  }

  /** Never rejects: what can't be opened is refused, and says why. */
  async open(request: TerminalOpen): Promise<void> {
    this.#undecided.begin(request)
    try {
      await this.#decide(request)
    } catch (error) {
      // Its modules may be gone: the agent was replaced in place by another version.
      const why = error instanceof Error ? error.message : String(error)
      this.#options.log('ERROR', 'a terminal could not be opened', { sessionId: request.sessionId, why })
      this.#refuse(request.sessionId, `the agent of this host can not open a terminal: ${why}`)
    } finally {
      this.#undecided.end(request)
    }
  }

  async #decide(request: TerminalOpen, isTimeKnown = false): Promise<void> {
    const { lack, verify, distrusted, hearServerTime } = this.#options
    const { sessionId } = request
    if (lack !== null) return this.#refuse(sessionId, `this agent has no terminal facility: ${lack}`)
    // Before anything is judged: from then on nothing comes between that and what follows from it.
    if (this.#loaded === null) {
      const loaded = await loadSessions()
      this.#loaded ??= loaded
    }
    const distrust = verify('TERMINAL_OPEN', request)
    if (distrust !== null) {
      // As with scripts: the server's clock may have been set since it was last heard (reliability F13).
      if (isTooOld(distrust) && !isTimeKnown) {
        this.#undecided.holdInput(sessionId)
        if (await hearServerTime()) return this.#decide(request, true)
      }
      this.#undecided.takeInput(sessionId)
      distrusted(`TERMINAL_OPEN ${sessionId}`, distrust)
      return this.#refuse(sessionId, distrust)
    }
    const known = this.#sessions.get(sessionId)
    if (known) return this.#takeUp(known, request)
    this.#undecided.takeInput(sessionId)
    if (request.after !== undefined)
      return this.#refuse(sessionId, 'the session is gone: the agent of this host has ended since')
    if (this.#past.has(sessionId)) return this.#refuse(sessionId, 'the session has ended')
    if (this.#isStopped) return this.#refuse(sessionId, 'the agent of this host is being stopped')
    if (this.size >= mostSessions)
      return this.#refuse(sessionId, `this host has ${mostSessions} sessions open already, its most`)
    return this.#begin(request, this.#loaded)
  }

  input({ sessionId, data }: Payloads['TERMINAL_INPUT']): void {
    const session = this.#sessions.get(sessionId)
    if (session?.isAttached) return session.write(data)
    if (this.#undecided.keepInput(sessionId, data)) return
    // Input is not signed: who has not shown over this link to be the server must not type into a shell that lives.
    if (session && session.closed === null)
      this.#options.distrusted(
        `TERMINAL_INPUT ${sessionId}`,
        'signature missing: this link has not taken the session up',
      )
  }

  resize({ sessionId, cols, rows }: Payloads['TERMINAL_RESIZE']): void {
    const session = this.#sessions.get(sessionId)
    if (session?.isAttached) session.resize(cols, rows)
  }

  acknowledged({ sessionId, sequence }: Payloads['TERMINAL_ACK']): void {
    const session = this.#sessions.get(sessionId)
    if (session?.isAttached) session.acknowledged(sequence)
  }

  close({ sessionId }: Payloads['TERMINAL_CLOSE']): void {
    const session = this.#sessions.get(sessionId)
    if (session?.closed && session.isCloseSent) return this.#forget(session)
    // Whoever asks for the end need not show who it is, and hears of it.
    if (session && !session.isAttached) session.attach(session.frames.last)
    session?.end('the session was closed')
    // One that is being decided is over before it has begun.
    if (!session && this.#undecided.asksFor(sessionId)) this.#remember(sessionId)
  }

  /** One frame of each session that has some, so that none of them waits for another's flood; whether there was any. */
  turn(): boolean {
    let wasSent = false
    for (const session of this.#sessions.values()) if (this.#sendNext(session)) wasSent = true
    return wasSent
  }

  /** Ends all sessions; settles when their processes are gone. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const session of this.#sessions.values()) session.end('the agent of this host was stopped')
    if (this.size > 0)
      await new Promise<void>((resolve) => {
        this.#whenEmpty = resolve
      })
    this.#loaded?.host.stop()
    for (const cancel of this.#timers.values()) cancel()
  }

  #refuse(sessionId: string, reason: string): void {
    this.#sending?.send('TERMINAL_CLOSED', { sessionId, exitCode: null, signal: null, reason })
  }

  async #begin(request: TerminalOpen, { Session, host }: Loaded): Promise<void> {
    const { sessionId } = request
    const session = new Session(
      request,
      { ...this.#options, host },
      {
        opened: () => this.#opened(session),
        changed: () => this.#pump(session),
        dropped: () => this.#dropped(session),
        ended: () => this.#ended(session),
      },
    )
    session.isAttached = this.#sending !== null
    this.#sessions.set(sessionId, session)
    this.#options.changed()
    await session.open(request)
  }

  #opened(session: Session): void {
    const { sessionId, isAttached } = session
    if (isAttached) this.#sending?.send('TERMINAL_OPENED', { sessionId })
    else this.#awaitLink(session)
  }

  #takeUp(session: Session, { cols, rows, after = -1 }: TerminalOpen): void {
    const { sessionId } = session
    session.attach(after)
    if (session.closed === null) {
      this.#cancelTimer(sessionId)
      session.resize(cols, rows)
      if (session.isOpen) this.#sending?.send('TERMINAL_OPENED', { sessionId })
    }
    const typed = this.#undecided.takeInput(sessionId)
    if (typed) session.write(typed)
    this.#pump(session)
  }

  #dropped({ sessionId, isAttached, drops }: Session): void {
    if (!drops.begins(this.#options.clock.monotonic())) return
    const message = `session ${sessionId}: its program reads no input, and what is typed is dropped`
    this.#options.log('WARN', 'input is dropped: its program reads none', { sessionId })
    if (isAttached) this.#sending?.send('ERROR', { code: 413, message, refId: null, sessionId })
  }

  #pump(session: Session): void {
    while (this.#sendNext(session));
  }

  #sendNext(session: Session): boolean {
    const sending = this.#sending
    if (sending === null || !session.isAttached || session.isCloseSent || !sending.hasRoom()) return false
    const output = session.next()
    if (output) sending.send('TERMINAL_OUTPUT', output)
    else if (session.closed) {
      session.isCloseSent = true
      sending.send('TERMINAL_CLOSED', session.closed)
    }
    return output !== null
  }

  /** Who is not taken up again has nobody left. */
  #awaitLink(session: Session): void {
    const { sessionId } = session
    this.#after(sessionId, longestAbsence, () => session.end('the server did not come back to the session'))
  }

  #ended(session: Session): void {
    const { sessionId } = session
    this.#remember(sessionId)
    this.#after(sessionId, endKept, () => this.#forget(session))
    this.#pump(session)
    this.#options.changed()
    if (this.size === 0) this.#whenEmpty?.()
  }

  #remember(sessionId: string): void {
    this.#past.add(sessionId, this.#options.clock.monotonic())
  }

  #forget({ sessionId }: Session): void {
    this.#cancelTimer(sessionId)
    this.#sessions.delete(sessionId)
  }

  #after(sessionId: string, milliseconds: number, run: () => void): void {
    this.#cancelTimer(sessionId)
    const cancel = this.#options.clock.after(milliseconds, run)
    this.#timers.set(sessionId, cancel)
  }

  #cancelTimer(sessionId: string): void {
    this.#timers.get(sessionId)?.()
    this.#timers.delete(sessionId)
  }
}
